#include "percent.h"

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool percent_decode(struct span text, char *out, size_t size, size_t *len)
{
    *len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%') {
            if (text.len - i < 3)
                return false;
            int high = hex_value(text.ptr[i + 1]);
            int low = hex_value(text.ptr[i + 2]);
            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (*len == size)
            return false;
        out[(*len)++] = c;
    }
    return true;
}

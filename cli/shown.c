#include "shown.h"

#include <inttypes.h>

#include "../server/base/utf8.h"

void shown_put(const char *text, FILE *out)
{
    struct span rest = span_of(text);
    while (rest.len > 0) {
        size_t len = utf8_len(rest);
        if (len == 0) {
            (void)fputs("\\uFFFD", out);
            len = 1;
        } else if (utf8_is_obeyed(rest)) {
            (void)fprintf(out, "\\u%04" PRIX32, utf8_code(rest, len));
        } else {
            (void)fwrite(rest.ptr, 1, len, out);
        }
        rest = (struct span){rest.ptr + len, rest.len - len};
    }
}

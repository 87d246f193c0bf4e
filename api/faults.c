#include "faults.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text that was cut must not end within a character. */
static void trim_utf8(char *text)
{
    size_t len = strlen(text);
    size_t tail = 0;
    while (tail < len && tail < 3 &&
           ((unsigned char)text[len - 1 - tail] & 0xc0) == 0x80)
        tail++;
    if (tail == len)
        return;
    unsigned char first = (unsigned char)text[len - 1 - tail];
    size_t wanted = first >= 0xf0   ? 3
                    : first >= 0xe0 ? 2
                    : first >= 0xc0 ? 1
                                    : 0;
    if (tail < wanted)
        text[len - 1 - tail] = '\0';
}

void faults_add(struct faults *errors, const char *pointer, const char *format,
                ...)
{
    if (errors->count == FAULTS_MAX)
        return;
    struct fault *error = &errors->list[errors->count++];
    va_list args;
    /* both may be cut: they are for people */
    (void)snprintf(error->pointer, sizeof error->pointer, "%s", pointer);
    va_start(args, format);
    (void)vsnprintf(error->detail, sizeof error->detail, format, args);
    va_end(args);
    trim_utf8(error->pointer);
    trim_utf8(error->detail);
}

#include "faults.h"

#include <stdarg.h>
#include <stdio.h>

#include "../../server/base/utf8.h"

/* A text that was cut must not end within a character. */
static void trim(char *text)
{
    struct span rest = span_of(text);
    for (size_t len; (len = utf8_len(rest)) > 0; rest.len -= len)
        rest.ptr += len;
    text[rest.ptr - text] = '\0';
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
    trim(error->pointer);
    trim(error->detail);
}

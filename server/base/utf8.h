/*
 * Characters of UTF-8 (RFC 3629). Pure.
 */
#ifndef REDLOCKD_UTF8_H
#define REDLOCKD_UTF8_H

#include "types.h"

/* Bytes of the first character of text; 0: there is none, or it is none. */
size_t utf8_len(struct span text);

/* Its number, where utf8_len is len. */
uint32_t utf8_code(struct span text, size_t len);

/* Whether the first character of text is a control character: of Unicode's
 * category Cc, U+0000 to U+001F and U+007F to U+009F. */
bool utf8_is_control(struct span text);

/*
 * Whether terminals and editors may obey it instead of showing it: a control
 * character, one that separates lines (U+2028, U+2029), one that changes the
 * direction of writing (Unicode Standard Annex #9), or none at all.
 */
bool utf8_is_obeyed(struct span text);

#endif

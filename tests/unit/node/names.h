/*
 * Names that end in ".test" lead where a test says: getaddrinfo(3) of this
 * program asks here first, for libuv's threads too.
 */
#ifndef REDLOCKD_TEST_NAMES_H
#define REDLOCKD_TEST_NAMES_H

/* From now on all of them lead there; "": nowhere. It takes after_us. */
void names_lead(const char *to, unsigned after_us);

/* How many were asked for since the program began. */
int names_asked(void);

#endif

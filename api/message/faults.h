/*
 * What is wrong with a request's input, member by member, until it is told.
 */
#ifndef REDLOCKD_FAULTS_H
#define REDLOCKD_FAULTS_H

enum {
    FAULTS_MAX = 8,
    FAULT_POINTER_MAX = 80,
    FAULT_DETAIL_MAX = 240,
};

/* What is wrong with one member of a body; pointer as in RFC 6901. */
struct fault {
    char pointer[FAULT_POINTER_MAX + 1];
    char detail[FAULT_DETAIL_MAX + 1];
};

struct faults {
    int count;
    struct fault list[FAULTS_MAX];
};

/* Adds one, formatted; those beyond the limit are left out. */
__attribute__((format(printf, 3, 4))) void
faults_add(struct faults *errors, const char *pointer, const char *format, ...);

#endif

/* Apart from accounts.h: it reads a file, and knows no account. */
/* SPDX-License-Identifier: MIT */
/*
 * Who may ask, and for what: what an auth file says. One line per identity:
 *
 *   name  credential  scopes  [key=value …]
 *
 *   credential   sha256: and the SHA-256 of an access token in hex, or cert:, a
 *                kind of names (dns, uri, email or cn), ":" and a name of this
 *                kind in a client certificate
 *   scopes       some of lock, read, metrics, admin; commas between
 *   keys         prefix (may occur again; * for all resources), rate, burst,
 *                locks, expires
 *
 * Blanks are between the words; a '%' in a name of a certificate or in a prefix
 * begins a percent-encoded byte. Lines that are blank or begin with '#' say
 * nothing.
 */
#ifndef REDLOCKD_IDENTITIES_H
#define REDLOCKD_IDENTITIES_H

#include "digest.h"

enum {
    IDENTITY_NAME_MAX = 64,
    IDENTITY_PREFIXES_MAX = 16,
    IDENTITY_RATE_MAX = 1000000, /* and of burst */
    IDENTITY_LOCKS_MAX = 1000000,
    IDENTITIES_MAX = 1000,
    IDENTITIES_LINE_MAX = 16384,
    IDENTITIES_SIZE_MAX = 1024 * 1024, /* of the file */
    IDENTITIES_ERROR_MAX = 200,        /* of what is wrong with its text */
    IDENTITIES_TEXT_MAX = 350,         /* and with the file */
    IDENTITIES_SEVERAL = -2,
};

enum scope { SCOPE_LOCK, SCOPE_READ, SCOPE_METRICS, SCOPE_ADMIN, SCOPES };
extern const char *const scope_names[SCOPES];

struct identity {
    char name[IDENTITY_NAME_MAX + 1];
    unsigned scopes;        /* a bit each */
    int64_t rate;           /* requests a second; 0: as many as it likes */
    int64_t burst;          /* requests at once */
    int64_t locks;          /* held at once; 0: as many as it likes */
    int64_t expires_s;      /* Unix time; 0: never */
    bool has_all_resources; /* else those with … */
    int prefixes_count;
    struct span prefixes[IDENTITY_PREFIXES_MAX];
    struct span certificate; /* kind:name in it; ptr NULL: it has a token */
    struct digest digest;    /* of its token */
    int line;                /* of the file */
};

struct identities {
    char *text; /* the prefixes and names of certificates lie in it */
    struct identity *list; /* in the order of their names */
    size_t size;           /* of its allocation */
    int count;
};

/*
 * Reads the text of a file. NULL: error is "LINE: reason", or only the reason
 * if no line is at fault; it repeats nothing of the file, which may hold a
 * secret where none belongs.
 */
struct identities *identities_parse(struct span text,
                                    char error[IDENTITIES_ERROR_MAX]);

/* Reads a file, without waiting for a writer of a FIFO. NULL: error is one line
 * for people. Warns in the log if others may read or write the file. */
struct identities *identities_load(const char *path,
                                   char error[IDENTITIES_TEXT_MAX]);

/* Writes "--auth-file: path: reason", or if it has a line, "path:line: …". */
void identities_explain(const char *path, const char *reason,
                        char error[IDENTITIES_TEXT_MAX]);

/* NULL is ignored. */
void identities_free(struct identities *all);

/* The identity with this name, token; -1: there is none. Looking for a digest
 * takes the same time whatever it is. */
int identities_find_name(const struct identities *all, const char *name);
int identities_find_digest(const struct identities *all,
                           const struct digest *digest);

/* The identity with one of the names, each with its kind, as in names.h; -1:
 * none has one; IDENTITIES_SEVERAL: it is unclear who it is. */
int identities_find_certificate(const struct identities *all,
                                struct span names);

/* Whether both are known by the same token or certificate. */
bool identity_has_same_credential(const struct identity *a,
                                  const struct identity *b);

/* Whether each of the names (as in names.h) begins with one of its prefixes. */
bool identity_covers(const struct identity *it, struct span names);

/* Narrows a prefix to what it may use, as far as one prefix can. False: it may
 * use nothing that begins so. */
bool identity_narrow(const struct identity *it, struct span *prefix);

#endif

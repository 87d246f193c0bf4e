/* SPDX-License-Identifier: MIT */
#include "identities.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../../server/base/clock.h"
#include "../../server/base/encoding.h"
#include "../../server/base/log.h"
#include "../../server/base/process.h"
#include "../../server/lock/names.h"
#include "../message/id.h"

const char *const scope_names[SCOPES] = {
    [SCOPE_LOCK] = "lock",
    [SCOPE_READ] = "read",
    [SCOPE_METRICS] = "metrics",
    [SCOPE_ADMIN] = "admin",
};

/* ---- words -------------------------------------------------------------- */

static bool identities_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Takes what stands in front of the next blank off rest; empty: no more. */
static struct span next_word(struct span *rest)
{
    while (rest->len > 0 && identities_is_blank(*rest->ptr)) {
        rest->ptr++;
        rest->len--;
    }
    struct span word = {rest->ptr, 0};
    while (word.len < rest->len && !identities_is_blank(rest->ptr[word.len]))
        word.len++;
    *rest = span_behind(*rest, word.len);
    return word;
}

/* Takes the start off the word, if it begins with it. */
static bool take_start(struct span *word, const char *start)
{
    size_t len = strlen(start);
    if (word->len < len || memcmp(word->ptr, start, len) != 0)
        return false;
    *word = span_behind(*word, len);
    return true;
}

/* In place: what is decoded is no longer than the code. */
static bool identities_decode(struct span *word)
{
    return percent_decode(*word, (char *)word->ptr, word->len, &word->len) &&
           word->len > 0 && memchr(word->ptr, '\0', word->len) == NULL;
}

/* ---- a line: NULL, or why it is refused (static) ------------------------ */

static const char *identities_read_name(struct span word, struct identity *it)
{
    if (word.len > IDENTITY_NAME_MAX || !span_has_only(word, "._-"))
        return "the name must have 1 to 64 characters of A-Z a-z 0-9 . _ -";
    it->name[span_copy(it->name, word)] = '\0';
    return NULL;
}

static const char *read_certificate(struct span word, struct identity *it)
{
    static const char *const kinds[] = {"dns:", "uri:", "email:", "cn:"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct span name = word;
        if (!take_start(&name, kinds[i]))
            continue;
        if (!identities_decode(&name))
            return "cert: and the kind must be followed by the name in the "
                   "certificate, with '%' as %25";
        it->certificate = (struct span){word.ptr, strlen(kinds[i]) + name.len};
        return NULL;
    }
    return "cert: must be followed by the kind of the name and the name: "
           "cert:dns:NAME, cert:uri:NAME, cert:email:NAME or cert:cn:NAME";
}

static const char *read_credential(struct span word, struct identity *it)
{
    struct digest nothing;
    if (take_start(&word, "cert:"))
        return read_certificate(word, it);
    if (!take_start(&word, "sha256:") || !digest_read(&it->digest, word))
        return "the second word must be sha256: and 64 hex digits, the SHA-256 "
               "of the access token, or cert:, dns:, uri:, email: or cn:, and "
               "the name in a client certificate";
    if (!digest_make(&nothing, span_of("")))
        return "SHA-256 is not available";
    return digest_same(&nothing, &it->digest) != 0
               ? "this is the SHA-256 of an empty access token; set the "
                 "variable that should hold the token, and hash it again"
               : NULL;
}

static const char *read_scopes(struct span word, struct identity *it)
{
    static const char reason[] =
        "the third word must be the scopes: lock, read, metrics or admin, each "
        "at most once, separated by commas without blanks";
    if (word.len == 0 || word.ptr[word.len - 1] == ',')
        return reason;
    while (word.len > 0) {
        struct span part = span_take(&word, ',');
        int scope = 0;
        while (scope < SCOPES && !span_is(part, scope_names[scope]))
            scope++;
        if (scope == SCOPES || (it->scopes & 1u << scope) != 0)
            return reason;
        it->scopes |= 1u << scope;
    }
    return NULL;
}

static const char *read_prefix(struct span word, struct identity *it)
{
    if (span_is(word, "*")) {
        it->has_all_resources = true;
        return NULL;
    }
    if (it->prefixes_count == IDENTITY_PREFIXES_MAX)
        return "it has more than 16 prefixes; give it a shorter prefix that "
               "covers several, or split it into two identities";
    if (!identities_decode(&word) || id_check_resource(word) != NULL)
        return "prefix= must be followed by a prefix of resources, with "
               "spaces as %20 and '%' as %25, or by * for all resources";
    it->prefixes[it->prefixes_count++] = word;
    return NULL;
}

/* Keys with a number from 1 to most. */
static const struct {
    const char *key;
    size_t at; /* of an int64_t in struct identity */
    int64_t most;
    const char *reason;
} numbers[] = {
    {"rate=", offsetof(struct identity, rate), IDENTITY_RATE_MAX,
     "rate= must occur once, with the number of requests a second: 1 to "
     "1000000"},
    {"burst=", offsetof(struct identity, burst), IDENTITY_RATE_MAX,
     "burst= must occur once, with the number of requests at once: 1 to "
     "1000000"},
    {"locks=", offsetof(struct identity, locks), IDENTITY_LOCKS_MAX,
     "locks= must occur once, with the number of locks held at once: 1 to "
     "1000000"},
};

static const char *identities_read_key(struct span word, struct identity *it)
{
    if (take_start(&word, "prefix="))
        return read_prefix(word, it);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int64_t *number = (int64_t *)(void *)((char *)it + numbers[i].at);
        if (!take_start(&word, numbers[i].key))
            continue;
        bool is_first = *number == 0;
        *number = span_number(word, 7);
        return is_first && *number >= 1 && *number <= numbers[i].most
                   ? NULL
                   : numbers[i].reason;
    }
    if (take_start(&word, "expires=")) {
        bool is_first = it->expires_s == 0;
        it->expires_s = timestamp_read(word);
        return is_first && it->expires_s > 0
                   ? NULL
                   : "expires= must occur once, with a time in UTC, as in "
                     "2027-01-31T18:00:00Z";
    }
    return "only prefix=, rate=, burst=, locks= and expires= may follow the "
           "scopes";
}

/* Scopes of calls that name resources. */
enum {
    NAMES_RESOURCES = 1 << SCOPE_LOCK | 1 << SCOPE_READ | 1 << SCOPE_ADMIN,
};

static const char *read_identity(struct span line, struct identity *it)
{
    const char *reason = identities_read_name(next_word(&line), it);
    if (reason == NULL)
        reason = read_credential(next_word(&line), it);
    if (reason == NULL)
        reason = read_scopes(next_word(&line), it);
    struct span word = {0};
    while (reason == NULL && (word = next_word(&line)).len > 0)
        reason = identities_read_key(word, it);
    if (reason != NULL)
        return reason;
    if (it->has_all_resources && it->prefixes_count > 0)
        return "prefix=* allows all resources, so it must be the only prefix; "
               "a name that begins with '*' is written %2A";
    if ((it->scopes & NAMES_RESOURCES) != 0 && !it->has_all_resources &&
        it->prefixes_count == 0)
        return "prefix= is missing; give the prefixes of its resources, or "
               "prefix=* for all";
    if (it->burst > 0 && it->rate == 0)
        return "burst= needs rate= as well";
    if (it->burst == 0)
        it->burst = it->rate;
    return NULL;
}

/* ---- all lines ---------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool
identities_fail(char error[IDENTITIES_ERROR_MAX], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error, IDENTITIES_ERROR_MAX, format, args);
    va_end(args);
    return false;
}

static bool add_line(struct identities *all, struct span line, int number,
                     char error[IDENTITIES_ERROR_MAX])
{
    struct span rest = line;
    struct span word = next_word(&rest);
    const char *reason = NULL;
    if (line.len > IDENTITIES_LINE_MAX)
        reason = "the line is longer than 16384 bytes";
    else if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        reason = "the line ends with CR LF; it must end with LF alone";
    for (size_t i = 0; reason == NULL && i < line.len; i++)
        if ((line.ptr[i] >= 0 && line.ptr[i] < ' ' && line.ptr[i] != '\t') ||
            line.ptr[i] == 0x7f)
            reason = "the line contains a control character";
    if (reason != NULL)
        return identities_fail(error, "%d: %s", number, reason);
    if (word.len == 0 || *word.ptr == '#')
        return true;
    if (all->count == IDENTITIES_MAX)
        return identities_fail(error, "%d: there are more than %d identities",
                               number, IDENTITIES_MAX);
    char *list = (char *)all->list;
    bool has_room = bytes_reserve(&list, &all->size,
                                  ((size_t)all->count + 1) * sizeof *all->list);
    all->list = (struct identity *)(void *)list;
    if (!has_room)
        return identities_fail(error, "out of memory");
    struct identity *it = &all->list[all->count++];
    *it = (struct identity){.line = number};
    reason = read_identity(line, it);
    return reason == NULL || identities_fail(error, "%d: %s", number, reason);
}

static bool read_lines(struct identities *all, struct span text,
                       char error[IDENTITIES_ERROR_MAX])
{
    if (text.len >= 3 && memcmp(text.ptr, "\xef\xbb\xbf", 3) == 0)
        return identities_fail(
            error, "1: the file begins with a byte order mark; save it "
                   "as UTF-8 without one");
    for (int number = 1; text.len > 0; number++) {
        if (memchr(text.ptr, '\n', text.len) == NULL)
            return identities_fail(error,
                                   "%d: the last line does not end with LF; "
                                   "the file may be incomplete",
                                   number);
        if (!add_line(all, span_take(&text, '\n'), number, error))
            return false;
    }
    return all->count > 0 ||
           identities_fail(
               error, "it has no identity, so every request would be refused; "
                      "add one (without --auth-file, anybody may do anything)");
}

/* ---- what must differ --------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct identity *left = a, *right = b;
    return strcmp(left->name, right->name);
}

bool identity_has_same_credential(const struct identity *a,
                                  const struct identity *b)
{
    if (a->certificate.ptr == NULL && b->certificate.ptr == NULL)
        return digest_same(&a->digest, &b->digest) != 0;
    return a->certificate.ptr != NULL && b->certificate.ptr != NULL &&
           span_is_same(a->certificate, b->certificate);
}

/* NULL, or what both have, though each must have its own (static). */
static const char *find_common(const struct identity *a,
                               const struct identity *b)
{
    if (strcmp(a->name, b->name) == 0)
        return "name";
    if (!identity_has_same_credential(a, b))
        return NULL;
    return a->certificate.ptr != NULL ? "certificate" : "access token";
}

/* A million comparisons at most, each of a few words. */
static bool check_distinct(const struct identities *all,
                           char error[IDENTITIES_ERROR_MAX])
{
    for (int i = 1; i < all->count; i++) {
        for (int j = 0; j < i; j++) {
            const struct identity *later = &all->list[i];
            const struct identity *earlier = &all->list[j];
            const char *common = find_common(later, earlier);
            if (common != NULL)
                return identities_fail(error,
                                       "%d: the %s is the same as on line %d; "
                                       "each identity needs its own",
                                       later->line, common, earlier->line);
        }
    }
    return true;
}

struct identities *identities_parse(struct span text,
                                    char error[IDENTITIES_ERROR_MAX])
{
    struct identities *all = calloc(1, sizeof *all);
    if (all != NULL)
        all->text = malloc(text.len + 1);
    if (all == NULL || all->text == NULL) {
        (void)identities_fail(error, "out of memory");
        identities_free(all);
        return NULL;
    }
    text = (struct span){all->text, span_copy(all->text, text)};
    if (!read_lines(all, text, error) || !check_distinct(all, error)) {
        identities_free(all);
        return NULL;
    }
    assert(all->list != NULL); /* there is one at least */
    qsort(all->list, (size_t)all->count, sizeof *all->list, by_name);
    return all;
}

void identities_free(struct identities *all)
{
    if (all == NULL)
        return;
    free(all->list);
    free(all->text);
    free(all);
}

/* ---- the file ----------------------------------------------------------- */

static void fail_file(char reason[IDENTITIES_ERROR_MAX], const char *text)
{
    (void)snprintf(reason, IDENTITIES_ERROR_MAX, "%c%s",
                   tolower((unsigned char)text[0]), text + 1);
}

/* NULL: reason says why. */
static struct identities *read_file(const char *path, mode_t *mode,
                                    char reason[IDENTITIES_ERROR_MAX])
{
    struct identities *identities = NULL;
    size_t len;
    char *text = process_read_file(path, O_NONBLOCK | O_NOCTTY,
                                   IDENTITIES_SIZE_MAX, &len, mode);
    int error = errno;
    if (*mode != 0 && !S_ISREG(*mode))
        fail_file(reason, "it is not a regular file");
    else if (text != NULL)
        identities = identities_parse((struct span){text, len}, reason);
    else if (error == EFBIG)
        fail_file(reason, "it is larger than 1 MiB");
    else
        fail_file(reason, error == ENOMEM ? "out of memory" : strerror(error));
    free(text);
    return identities;
}

void identities_explain(const char *path, const char *reason,
                        char error[IDENTITIES_TEXT_MAX])
{
    bool has_line = reason[0] >= '0' && reason[0] <= '9';
    (void)snprintf(error, IDENTITIES_TEXT_MAX, "--auth-file: %.120s:%s%s", path,
                   has_line ? "" : " ", reason);
}

struct identities *identities_load(const char *path,
                                   char error[IDENTITIES_TEXT_MAX])
{
    mode_t mode;
    char reason[IDENTITIES_ERROR_MAX];
    struct identities *identities = read_file(path, &mode, reason);
    if (identities == NULL)
        identities_explain(path, reason, error);
    else if ((mode & (S_IROTH | S_IWOTH)) != 0)
        log_write(LOG_WARN, "auth_file_open",
                  (struct log_field[]){
                      LOG_S("file", path),
                      LOG_S("detail", "every user of this machine may read or "
                                      "write the auth file; chmod 640"),
                      LOG_END});
    return identities;
}

/* ---- looking up --------------------------------------------------------- */

static int order_of(const void *name, const void *identity)
{
    return strcmp(name, ((const struct identity *)identity)->name);
}

int identities_find_name(const struct identities *all, const char *name)
{
    const struct identity *it = bsearch(name, all->list, (size_t)all->count,
                                        sizeof *all->list, order_of);
    return it != NULL ? (int)(it - all->list) : -1;
}

/* Each entry is looked at, and whole: the time reveals nothing of the digests.
 */
int identities_find_digest(const struct identities *all,
                           const struct digest *digest)
{
    uint64_t found = 0;
    for (int i = 0; i < all->count; i++) {
        const struct identity *it = &all->list[i];
        uint64_t has_token = 0 - (uint64_t)(it->certificate.ptr == NULL);
        found |=
            digest_same(&it->digest, digest) & has_token & ((uint64_t)i + 1);
    }
    return (int)found - 1;
}

static bool has_certificate(const struct identity *it, struct span names)
{
    while (it->certificate.ptr != NULL && names.len > 0) {
        struct span name = names_next(&names);
        if (names_compare(&name, &it->certificate) == 0)
            return true;
    }
    return false;
}

int identities_find_certificate(const struct identities *all, struct span names)
{
    int found = -1;
    for (int i = 0; i < all->count; i++) {
        if (!has_certificate(&all->list[i], names))
            continue;
        if (found >= 0)
            return IDENTITIES_SEVERAL;
        found = i;
    }
    return found;
}

bool identity_covers(const struct identity *it, struct span names)
{
    bool is_covered = names.len > 0;
    if (it->has_all_resources)
        return true;
    while (is_covered && names.len > 0) {
        struct span name = names_next(&names);
        is_covered = false;
        for (int i = 0; i < it->prefixes_count; i++) {
            struct span prefix = it->prefixes[i];
            is_covered |= name.len >= prefix.len &&
                          memcmp(name.ptr, prefix.ptr, prefix.len) == 0;
        }
    }
    return is_covered;
}

static size_t common_length(struct span a, struct span b)
{
    size_t len = 0;
    while (len < a.len && len < b.len && a.ptr[len] == b.ptr[len])
        len++;
    return len;
}

bool identity_narrow(const struct identity *it, struct span *prefix)
{
    struct span narrow = {NULL, 0};
    if (identity_covers(it, *prefix))
        return true;
    for (int i = 0; i < it->prefixes_count; i++) {
        struct span one = it->prefixes[i];
        if (common_length(one, *prefix) < prefix->len)
            continue; /* nothing of it is asked for */
        narrow.len = narrow.ptr == NULL ? one.len : common_length(one, narrow);
        narrow.ptr = one.ptr;
    }
    if (narrow.ptr == NULL)
        return false;
    *prefix = narrow;
    return true;
}

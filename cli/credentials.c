/* SPDX-License-Identifier: MIT */
#include "credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../server/base/process.h"
#include "complain.h"

enum { TEXT_MAX = 1 << 16 }; /* of a file, from which a token is taken */

static const char token_variable[] = "REDLOCKD_AUTH_TOKEN";

/* ---- files --------------------------------------------------------------- */

/* A file that an option names, or else a variable. */
struct setting {
    const char **path;
    const char *option, *variable;
};

/* Sets the path, and name to where it comes from; the path may stay NULL. */
static const char *find_path(const struct setting *setting)
{
    if (*setting->path != NULL)
        return setting->option;
    const char *path = getenv(setting->variable);
    *setting->path = path != NULL && *path != '\0' ? path : NULL;
    return setting->variable;
}

/* libcurl would notice only at the first connection, and say less. */
static bool take_path(const struct setting *setting)
{
    size_t len;
    mode_t mode;
    const char *name = find_path(setting);
    if (*setting->path == NULL)
        return true;
    char *nothing = process_read_file(*setting->path, 0, 0, &len, &mode);
    free(nothing);
    return nothing != NULL || errno == EFBIG /* it has more */ ||
           complain("%s: %.150s cannot be read: %s", name, *setting->path,
                    strerror(errno));
}

/* ---- the token ----------------------------------------------------------- */

/* What is wrong with the token; NULL: nothing. It is sent in a header as is. */
static const char *check_bearer(const char *text, size_t len)
{
    if (len == 0)
        return "it is empty";
    if (memchr(text, '\n', len) != NULL)
        return "it has more than one line";
    if (len > BEARER_MAX)
        return "it is longer than 4096 characters";
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return "it contains a character that is not a letter, digit or "
                   "other visible ASCII character";
    return NULL;
}

/* What is wrong with the file; NULL: nothing, and bearer is filled. */
static const char *read_bearer(const char *path, int flags,
                               char bearer[BEARER_MAX + 1])
{
    size_t len;
    mode_t mode;
    char *text = process_read_file(path, flags, TEXT_MAX, &len, &mode);
    if (text == NULL)
        return strerror(errno);
    if (len > 0 && text[len - 1] == '\n')
        len--;
    if (len > 0 && text[len - 1] == '\r')
        len--;
    text[len] = '\0';
    const char *wrong = check_bearer(text, len);
    if (wrong == NULL)
        memcpy(bearer, text, len + 1);
    free(text);
    return wrong;
}

/*
 * Moves the token out of the environment: a command under a lock would inherit
 * it, and other processes of this user could read it in /proc.
 */
static bool take_bearer(struct credentials *credentials, const char *option)
{
    char *value = getenv(token_variable), *bearer = credentials->bearer;
    const char **path = &credentials->bearer_file, *wrong = NULL;
    *path = option;
    const char *name = find_path(&(struct setting){path, "--auth-token-file",
                                                   "REDLOCKD_AUTH_TOKEN_FILE"});
    bool is_set = value != NULL && *value != '\0';
    if (is_set) {
        size_t len = strlen(value);
        wrong = check_bearer(value, len);
        if (wrong == NULL)
            memcpy(bearer, value, len + 1);
        explicit_bzero(value, len);
        (void)unsetenv(token_variable); /* fails only for an invalid name */
    }
    if (*path == NULL)
        return wrong == NULL || complain("%s: %s", token_variable, wrong);
    if (is_set && option == NULL)
        return complain("%s and %s are both set: unset one of them", name,
                        token_variable);
    wrong = read_bearer(*path, 0, bearer);
    return wrong == NULL || complain("%s: %.150s: %s", name, *path, wrong);
}

bool credentials_name_us(const struct credentials *credentials)
{
    return *credentials->bearer || credentials->trust.cert_file != NULL;
}

bool credentials_put_back(const struct credentials *credentials)
{
    bool is_ours = credentials->bearer_file == NULL && *credentials->bearer;
    return !is_ours || setenv(token_variable, credentials->bearer, 1) == 0;
}

bool credentials_refresh(struct credentials *credentials)
{
    char bearer[BEARER_MAX + 1];
    /* the file may be a pipe: do not wait for a writer */
    if (credentials->bearer_file == NULL ||
        read_bearer(credentials->bearer_file, O_NONBLOCK, bearer) != NULL ||
        strcmp(bearer, credentials->bearer) == 0)
        return false;
    memcpy(credentials->bearer, bearer, sizeof bearer);
    return true;
}

bool credentials_take(struct credentials *credentials,
                      const struct options *options)
{
    struct fetch_trust *trust = &credentials->trust;
    *credentials = (struct credentials){
        .trust = {options->ca_file, options->cert_file, options->key_file}};
    const struct setting files[] = {
        {&trust->ca_file, "--cacert", "REDLOCKD_CACERT"},
        {&trust->cert_file, "--cert", "REDLOCKD_CERT"},
        {&trust->key_file, "--key", "REDLOCKD_KEY"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!take_path(&files[i]))
            return false;
    if (trust->key_file != NULL && trust->cert_file == NULL)
        return complain("--key without --cert: name the certificate of "
                        "this key");
    return take_bearer(credentials, options->auth_token_file);
}

const char *credentials_advice(const struct credentials *credentials)
{
    if (credentials->bearer_file != NULL)
        return "is the access token in the file of --auth-token-file the right "
               "one?";
    if (*credentials->bearer)
        return "is the access token in REDLOCKD_AUTH_TOKEN the right one?";
    return "give an access token with --auth-token-file or REDLOCKD_AUTH_TOKEN";
}

/* SPDX-License-Identifier: MIT */
#include "words.h"

#include <check.h>
#include <string.h>

enum { WORDS_MAX = 64 };

/* Splits words at spaces into a NULL-terminated array; returns the count. */
static int split(const char *words, char *copy, size_t size, char **out)
{
    char *rest = NULL;
    int count = 0;

    ck_assert_uint_lt(strlen(words), size);
    strcpy(copy, words);
    for (char *word = strtok_r(copy, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest)) {
        ck_assert_int_lt(count, WORDS_MAX - 1);
        out[count++] = word;
    }
    out[count] = NULL;
    return count;
}

bool words_load(struct config *config, const char *env, const char *args,
                char error[CONFIG_ERROR_MAX])
{
    char env_copy[4096], args_copy[2048];
    char *envp[WORDS_MAX], *argv[WORDS_MAX + 1] = {"redlockd"};

    split(env, env_copy, sizeof env_copy, envp);
    int argc = 1 + split(args, args_copy, sizeof args_copy, argv + 1);
    return config_load(config, argc, argv, envp, error);
}

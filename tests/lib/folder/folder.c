/* SPDX-License-Identifier: MIT */
#include "folder.h"

#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

#include "../suite/suite.h"

enum { TRIES = 1000, TRY_US = 10000, DESCRIPTORS = 16 };

static int remove_entry(const char *path, const struct stat *stat, int type,
                        struct FTW *at)
{
    (void)stat, (void)type, (void)at;
    return remove(path);
}

bool folder_remove(const char *path)
{
    for (int i = 0; i < TRIES; i++) {
        if (nftw(path, remove_entry, DESCRIPTORS, FTW_DEPTH | FTW_PHYS) == 0)
            return true;
        usleep(TRY_US);
    }
    return false;
}

void folder_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

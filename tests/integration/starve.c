/* SPDX-License-Identifier: MIT */
/*
 * The file that a starved server shares with the test.
 */
#include "starve.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../starved/page.h"

static struct starved_page *page;

void starve_prepare(struct server *server)
{
    char dir[PATH_SIZE];

    harness_make_dir(dir);
    snprintf(server->starved, sizeof server->starved, "%.200s/page", dir);
    int fd = open(server->starved, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, sizeof *page), 0);
    void *at =
        mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(at, MAP_FAILED);
    close(fd);
    page = at;
}

void starve_begin(int n, bool lasts)
{
    atomic_store(&page->failed, 0);
    atomic_store(&page->lasts, lasts);
    atomic_store(&page->left, n);
}

int starve_count(void)
{
    return (int)atomic_load(&page->failed);
}

int starve_end(void)
{
    atomic_store(&page->left, 0);
    return starve_count();
}

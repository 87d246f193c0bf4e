/* SPDX-License-Identifier: MIT */
/* Preloaded into a server: lets one allocation fail, or all from one on.
 *
 *   STARVED=FILE   which one: struct starved_page
 *
 * Only those of the main thread count, from main on, and none of libuv's own:
 * libuv ends the process by design when it gets no memory.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uv.h>

#include "page.h"

static struct starved_page *page;
static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);

/* ISO C knows no conversion from an object's pointer to a function's. */
static void find(void *function, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

/* Runs behind the constructors of the libraries: what they get is theirs. */
__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("STARVED");
    if (!path)
        return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *at =
        mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || at == MAP_FAILED)
        abort();
    close(fd);
    page = at;
}

static bool is_libuv(const void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) != 0 && info.dli_fname &&
           strstr(info.dli_fname, "libuv");
}

static bool fails(const void *caller)
{
    int64_t left = page ? atomic_load(&page->left) : 0;
    if (left <= 0 || getpid() != gettid() || is_libuv(caller))
        return false;
    if (left > 1 || !atomic_load(&page->lasts))
        atomic_fetch_sub(&page->left, 1);
    if (left > 1)
        return false;
    atomic_fetch_add(&page->failed, 1);
    errno = ENOMEM;
    return true;
}

/* libuv calls it directly, so that its allocations can be told apart. */
int uv_replace_allocator(uv_malloc_func malloc_func,
                         uv_realloc_func realloc_func,
                         uv_calloc_func calloc_func, uv_free_func free_func)
{
    (void)malloc_func, (void)realloc_func, (void)calloc_func, (void)free_func;
    return 0;
}

/* The C library's own names for parameters are reserved.
 * NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */

void *malloc(size_t size)
{
    if (!real_malloc)
        find(&real_malloc, "malloc");
    return fails(__builtin_return_address(0)) ? NULL : real_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    if (!real_calloc)
        find(&real_calloc, "calloc");
    return fails(__builtin_return_address(0)) ? NULL : real_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    if (!real_realloc)
        find(&real_realloc, "realloc");
    return fails(__builtin_return_address(0)) ? NULL : real_realloc(old, size);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

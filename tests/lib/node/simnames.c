/* SPDX-License-Identifier: MIT */
/*
 * The names of the resources.
 */
#include <assert.h>
#include <stdlib.h>

#include "../../../server/lock/names.h"
#include "simnode.h"

static const char *const names[SIM_RESOURCES + 1] = {
    "order:1",
    "order:2",
    "order:3",
    "order:4",
    "stock:84",
    "mail:220",
    SIM_POOL_NAME NAMES_SLOT "0",
    SIM_POOL_NAME NAMES_SLOT "1",
    SIM_POOL_NAME NAMES_SLOT "2",
    SIM_POOL_NAME NAMES_SLOT};

const char *simnode_resource(int number)
{
    return names[number];
}

int simnode_resource_number(struct span name)
{
    for (int i = 0; i <= SIM_POOL; i++)
        if (span_is(name, names[i]))
            return i;
    abort();
}

int simnode_resource_numbers(struct span all, int numbers[SIM_RESOURCES])
{
    int count = 0;
    while (all.len > 0) {
        assert(count < SIM_RESOURCES);
        numbers[count++] = simnode_resource_number(names_next(&all));
    }
    return count;
}

size_t simnode_join(char text[SIM_NAMES_MAX], const int *numbers, int count)
{
    struct span list[SIM_RESOURCES];
    for (int i = 0; i < count; i++)
        list[i] = span_of(names[numbers[i]]);
    return names_join(text, list, count);
}

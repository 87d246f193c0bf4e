#include "claim.h"

#include <assert.h>

void claim_init(struct claim *claim)
{
    *claim = (struct claim){.latest_us = INT64_MAX};
}

void claim_date(struct claim *claim, int64_t asked_us, int64_t apart_us)
{
    if (claim->latest_us != INT64_MAX || asked_us == 0)
        return;
    claim->asked_us = at_least(claim->asked_us, asked_us);
    claim->latest_us = asked_us + apart_us;
}

void claim_know(struct claim *claim, int64_t number, int64_t try_us)
{
    assert(number > 0); /* token_parse takes no token with 0 */
    claim->asked_us = at_least(claim->asked_us, number + 1);
    claim->number = number;
    claim->try_us = try_us;
}

void claim_find(struct claim *claim, int64_t number, int64_t now_us)
{
    assert(number > 0); /* token_parse takes no token with 0 */
    bool is_earlier = number < claim->asked_us;
    if (number == claim->number) {
        claim_wait(claim, now_us);
        return;
    }
    if (!is_earlier && number >= claim->latest_us)
        return;
    claim->number = number;
    claim->latest_us = 0; /* any other one is later than this */
    claim->try_us = is_earlier ? now_us : now_us + CLAIM_ANEW_US;
}

void claim_miss(struct claim *claim)
{
    *claim = (struct claim){0};
}

void claim_wait(struct claim *claim, int64_t now_us)
{
    if (claim->try_us == 0)
        claim->try_us = now_us + CLAIM_ANEW_US;
}

int64_t claim_try(struct claim *claim, int64_t now_us)
{
    if (claim_is_due(claim, now_us)) {
        claim->asked_us = at_least(claim->asked_us, claim->number + 1);
        claim->try_us = 0;
    }
    return claim->asked_us;
}

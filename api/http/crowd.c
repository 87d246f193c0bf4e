#include "crowd.h"

enum { CROWD = 100 }; /* connections whose memory is worth it */

bool crowd_note(struct crowd *crowd, uint64_t count)
{
    uint64_t before = crowd->count;
    crowd->count = count;
    if (count > crowd->most)
        crowd->most = count;
    if (count > crowd->most / 2)
        return false;
    bool is_worth_it = crowd->most >= CROWD;
    if (count == before)
        crowd->most = count;
    return is_worth_it;
}

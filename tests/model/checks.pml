/* SPDX-License-Identifier: MIT */
/* What must hold in readers.pml. */

inline check_holders()
{
#ifdef REACH_DOWNGRADE
    is_reached = ALL(READS) == CLIENTS && ALL(IS_DOWNGRADED) > 0;
    assert(!is_reached);
#endif
    two_holders = ALL(WRITES) > 0 && ALL(HOLDS) > 1;
    assert(!two_holders)
}

inline check_grant(c)
{
#ifdef REACH_BOTH
    is_reached = IN(quarantined, c) && ALL(READS) > 1;
    assert(!is_reached);
#endif
#ifdef REACH_WRITER
    is_reached = mode[c] == WRITER && granted > granted_writer;
    assert(!is_reached);
#endif
    check_holders();
    falls_back = NUMBER(c) <= (mode[c] == READER -> granted_writer : granted);
    assert(!falls_back);
    granted = MAX(granted, NUMBER(c));
    granted_writer = (mode[c] == READER -> granted_writer : granted)
}

/* Nobody was granted the lock meanwhile who must not hold it with this one. */
inline check_extend(c)
{
    check_holders();
    falls_back = NUMBER(c) < (mode[c] == WRITER -> granted : granted_writer);
    assert(!falls_back)
}

inline check_set(c, n)
{
    leftover = IN(deleted[n], c);
    assert(!leftover)
}

/* SPDX-License-Identifier: MIT */
/* What readers.pml does after each step, so that there are fewer states.
 *
 * What cannot matter any more is lost: acquires that are stale; the rest
 * of a round that cannot win, and of a lock that cannot be held again, as both
 * can only refuse others; and the numbers of a node to which no acquire comes.
 * Nor does it matter which node is which: they are sorted. */
#ifdef NO_CHECK
#define READER_IS_STALE(c, n) 0
#else
#define READER_IS_STALE(c, n) (NUMBER(c) <= now.least[n])
#endif
#ifdef FORGETS
#define IS_FINAL 0 /* what is stale may be set later, a number told to others */
#else
#define IS_FINAL 1
#endif

c_code {
    static int is_stale(int c, int n)
    {
        return now.mode[c] == READER ? READER_IS_STALE(c, n)
                                     : NUMBER(c) <= now.highest[n];
    }

    static int count(const unsigned char *a, const unsigned char *b, int c)
    {
        int found = 0;
        for (int n = 0; n < NODES; n++)
            found += IN(a[n] | b[n], c);
        return found;
    }

    static int is_over(int c)
    {
        switch (now.phase[c]) {
        case ASKING:
            return count(now.firm, now.coming, c) < QUORUM;
        case HOLDING:
            return 0;
        case LAPSED:
#ifdef CREATES
            return 0;
#endif
            return count(now.has, now.has, c) < QUORUM;
        case RELEASED:
            return count(now.coming, now.replications, c) == 0 &&
                   count(now.has, now.has, c) == 0;
        }
        return 1;
    }

    static void settle_client(int c)
    {
        for (int n = 0; n < NODES; n++)
            if (IS_FINAL && is_stale(c, n))
                DROP(now.coming[n], c);
        int ends = is_over(c);
        if (ends)
            now.phase[c] = OVER;
        for (int n = 0; n < NODES; n++) {
            if (now.phase[c] >= LAPSED)
                DROP(now.firm[n], c);
            if (now.phase[c] == LAPSED || ends) {
                DROP(now.coming[n], c);
                DROP(now.replications[n], c);
            }
            if (ends && IN(now.has[n], c)) {
                DROP(now.has[n], c);
                now.is_writers[n] = 0;
            }
        }
        if (ends)
            now.mode[c] = READER;
    }

    static void swap(unsigned char *of, int n)
    {
        unsigned char kept = of[n];
        of[n] = of[n + 1];
        of[n + 1] = kept;
    }

    static void sort_two(int n)
    {
        unsigned char *const all[] = {
            now.highest, now.least, now.is_writers, now.has, now.firm,
            now.coming, now.replications, now.deleted, now.odd};
        const int count = sizeof all / sizeof *all;
        int i = 0;
        while (i < count && all[i][n] == all[i][n + 1])
            i++;
        if (i < count && all[i][n] > all[i][n + 1])
            for (; i < count; i++)
                swap(all[i], n);
    }

    static void settle(void)
    {
        for (int c = 0; c < CLIENTS; c++)
            settle_client(c);
        for (int n = 0; n < NODES; n++) {
            now.deleted[n] &= now.coming[n] | now.replications[n];
            if (IS_FINAL && now.coming[n] == 0)
                now.highest[n] = now.least[n] = 0;
        }
        for (int last = NODES - 1; last > 0; last--)
            for (int n = 0; n < last; n++)
                sort_two(n);
    }
};

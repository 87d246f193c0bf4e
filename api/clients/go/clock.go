// SPDX-License-Identifier: MIT

package redlockd

import (
	"context"
	"time"
)

// instant is a moment on the clock by which validity is measured, in
// nanoseconds since an arbitrary moment. It never steps back.
type instant int64

func (i instant) add(d time.Duration) instant { return i + instant(d) }

func (i instant) sub(other instant) time.Duration {
	return time.Duration(i - other)
}

var began = time.Now()

// Timers stop while the machine sleeps: what waits for a moment must look at
// the clock again after this time at most.
const longestSleep = time.Second

// pause returns after d, or when ctx has ended.
func pause(ctx context.Context, d time.Duration, clock func() instant) {
	until := clock().add(d)
	for ctx.Err() == nil {
		left := until.sub(clock())
		if left <= 0 {
			return
		}
		timer := time.NewTimer(shorter(left, longestSleep))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

func shorter(a, b time.Duration) time.Duration {
	if a < b {
		return a
	}
	return b
}

func longer(a, b time.Duration) time.Duration {
	if a > b {
		return a
	}
	return b
}

// SPDX-License-Identifier: MIT

package redlockd

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Lock is held until Release. Goroutines may share it.
type Lock struct {
	client *Client
	hold   *hold
	slots  []int

	ctx      context.Context // of the work
	end      context.CancelFunc
	release  sync.Once
	released error

	// guarded by the keeper's mutex
	kept      kept
	isStopped bool
	pending   *operation         // a renewal under way
	cancel    context.CancelFunc // of one that is repeated
	repeating sync.WaitGroup
}

type lockKey struct{}

// Acquire returns a lock that is extended in the background until Release.
//
// If ctx ends meanwhile, Acquire returns its error, and releases what may have
// been granted. That takes up to two seconds if no server answers; if the request
// is part of a batch, it is done in the background, and Close waits for it. ctx is
// also the parent of the lock's Context, so bound the wait with Options.Wait
// rather than with a timeout of ctx.
func (c *Client) Acquire(ctx context.Context, options Options) (*Lock, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	options.Resources = append([]string(nil), options.Resources...)
	t := newAcquiring(c.parties, options, key, c.clock())
	err = c.run(ctx, t)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		if t.asked != nil && t.asked.later != nil {
			c.cleaning.begin()
			go c.retractLater(t)
		} else {
			c.retract(t, ctx.Err() != nil)
		}
		return nil, err
	}
	return c.keep(ctx, t), nil
}

// retractLater waits for the answer to a request that went with others.
func (c *Client) retractLater(t *acquiring) {
	defer c.cleaning.end()
	a := <-t.asked.later
	t.asked = nil
	t.take(a, c.clock())
	c.retract(t, true)
}

// retract releases what an acquire that failed may have been granted. isEnded:
// its context has.
func (c *Client) retract(t *acquiring, isEnded bool) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpTimeout)
	defer cancel()
	if t.granted != nil {
		hold := newHold(&t.options, t.granted, c.clock)
		_ = c.run(ctx, &releasing{parties: c.parties, hold: hold})
	} else if isEnded && t.mayHold() {
		_ = c.run(ctx, &retracting{parties: c.parties, options: t.options,
			key: t.key, clock: c.clock})
	} // if no server answers, it ends with its TTL
}

func (c *Client) keep(ctx context.Context, t *acquiring) *Lock {
	l := &Lock{client: c, slots: t.granted.slots,
		hold: newHold(&t.options, t.granted, c.clock)}
	l.kept = kept{lock: l, hold: l.hold, place: -1}
	l.ctx, l.end = context.WithCancel(context.WithValue(ctx, lockKey{}, l))
	l.keepOn()
	return l
}

// lose ends the work, unless the lock was released. The reason of an earlier
// loss stands.
func (l *Lock) lose(reason string) {
	if l.hold.lose(reason) {
		l.end()
		l.stop()
	}
}

// Context is for the work: it ends when the lock is lost, a tenth of the TTL
// before its validity ends, when the lock is released, or with the context of
// Acquire. Cause says which.
func (l *Lock) Context() context.Context { return l.ctx }

// Cause is what ended a context that a lock's Context is or was made of: an
// ErrLost if the lock was lost, else the context's own error.
func Cause(ctx context.Context) error {
	err := ctx.Err()
	lock, isLock := ctx.Value(lockKey{}).(*Lock)
	if err != nil && isLock && lock.hold.isLost() {
		return lock.hold.err()
	}
	return err
}

// Check returns nil if the lock is still yours, an ErrLost, or ErrReleased. Call
// it right before each step that cannot be undone. It looks at the clock, and
// asks no server.
func (l *Lock) Check() error {
	if l.hold.remaining() <= 0 {
		l.lose("the lock's validity ended")
	}
	return l.hold.err()
}

// Err is what Check returned, or what was noticed in the background; nil while
// the lock is held. It does not look at the clock.
func (l *Lock) Err() error { return l.hold.err() }

// Remaining is how long the work may go on if the lock is not extended: until a
// tenth of the TTL before its validity ends. 0: the lock is lost or released.
func (l *Lock) Remaining() time.Duration { return l.hold.remaining() }

// FencingToken rises with every grant: the resource should refuse lower ones.
func (l *Lock) FencingToken() int64 { return l.hold.now().fencingToken }

// Token proves to redlockd that the lock is yours: keep it secret. Downgrade
// changes it.
func (l *Lock) Token() string { return l.hold.now().token }

// ID is the lock's name in URLs.
func (l *Lock) ID() string { return l.hold.now().id }

// Shared tells whether others may hold the lock, too, as readers.
func (l *Lock) Shared() bool { return l.hold.now().isShared }

// Slots are, with a Limit, the numbers that nobody else has, from 0 on.
func (l *Lock) Slots() []int { return append([]int(nil), l.slots...) }

// String names the lock, without its token.
func (l *Lock) String() string {
	return fmt.Sprintf("lock %s (%d)", l.hold.name, l.FencingToken())
}

// Downgrade makes an exclusive lock a shared one: no writer gets in between.
// Stop writing before you call it: others may read before it returns. It returns
// an ErrLost if the lock is lost, an ErrRefused if the servers refuse it. Without
// an answer it tries until the validity ends. If ctx ends, the next renewal does
// it. There is no way back.
func (l *Lock) Downgrade(ctx context.Context) error {
	if err := l.Check(); err != nil {
		return err
	}
	if l.Shared() {
		return nil
	}
	err := l.client.run(ctx, newDowngrade(l.client.parties, l.hold))
	if l.hold.isLost() {
		l.lose("")
	}
	return err
}

// Release ends the work's Context, stops the renewals, and releases the lock. It
// returns an ErrLost if the lock had ended before, and an ErrUnavailable if no
// server answers: then the lock ends with its TTL. A ctx that has already ended
// does not keep it from trying, for up to two seconds. Repeated, it returns what
// it returned first.
func (l *Lock) Release(ctx context.Context) error {
	l.release.Do(func() { l.released = l.doRelease(ctx) })
	return l.released
}

func (l *Lock) doRelease(ctx context.Context) error {
	_ = l.Check() // a loss that nobody has noticed yet
	l.hold.release()
	l.stop()
	l.end()
	l.repeating.Wait()
	// also if it was lost: some of its resources may still be locked
	t := &releasing{parties: l.client.parties, hold: l.hold}
	err := ctx.Err()
	if err == nil {
		err = l.client.run(ctx, t)
		t.mayBeDone = t.mayBeDone || t.asked != nil && !t.asked.isUnsent
	}
	if err != nil && err == ctx.Err() {
		detached, cancel := context.WithTimeout(context.Background(),
			cleanUpTimeout)
		defer cancel()
		err = l.client.run(detached, t)
	}
	if l.hold.isLost() {
		return l.hold.err()
	}
	return err
}

// Do runs work while it holds a lock. work should stop when ctx ends: Do cannot
// stop it. Do returns what work returned; an ErrLost if the lock was lost, which
// then wraps what work returned; or the error of Acquire. A release that failed
// is only told to Logf: the lock ends with its TTL.
func (c *Client) Do(ctx context.Context, options Options,
	work func(ctx context.Context, lock *Lock) error) (err error) {
	lock, err := c.Acquire(ctx, options)
	if err != nil {
		return err
	}
	defer func() {
		ended := lock.Release(ctx)
		if loss, isLoss := ended.(*LostError); isLoss {
			err = &LostError{Name: loss.Name, Reason: loss.Reason, Work: err}
		} else if ended != nil {
			c.logf("%v", ended)
		}
	}()
	return work(lock.Context(), lock)
}

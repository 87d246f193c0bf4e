// SPDX-License-Identifier: MIT

package user

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	redlockd "github.com/redlockd/redlockd/api/clients/go"
)

var never = m{"renew_after_ms": 60000, "validity_ms": 90000, "ttl_ms": 30000}

func TestAnotherReplicaExtends(t *testing.T) {
	t.Parallel()
	one := newFake(t, m{"renew_after_ms": 10, "ttl_ms": 4000, "validity_ms": 3900})
	two := newFake(t, never)
	one.on("PUT", silent)
	lock := acquire(t, newClient(t, redlockd.Config{}, one, two), wanted())
	waitUntil(t, func() bool { return lock.Remaining() > 8*time.Second }, "extended")
	must(t, lock.Check())
}

// lost holds a lock until it is lost, and returns how long before the end of its
// validity that was.
func lost(t *testing.T, f *fake, validity time.Duration) time.Duration {
	t.Helper()
	before := goroutines()
	began := time.Now()
	lock := acquire(t, newClient(t, redlockd.Config{}, f), wanted())
	work, cancel := context.WithCancel(lock.Context())
	defer cancel()
	ends(t, work)
	left := validity - time.Since(began)
	for _, err := range []error{lock.Check(), lock.Err(), redlockd.Cause(work),
		lock.Release(background), lock.Release(background)} {
		isTrue(t, errors.Is(err, redlockd.ErrLost), "a loss")
	}
	equal(t, lock.Remaining(), time.Duration(0))
	equal(t, f.count("DELETE"), 1) // some may be left
	waitUntil(t, func() bool { return goroutines() <= before }, "no goroutine is left")
	return left
}

func TestGoneIsLostAtOnce(t *testing.T) {
	for _, act := range []action{gone, notOwner} {
		f := newFake(t, m{"renew_after_ms": 20}).on("PUT", nil, act)
		isTrue(t, lost(t, f, 29*time.Second) > 5*time.Second, "at once")
		equal(t, f.count("PUT"), 1)
	}
}

// The work ends a tenth of the TTL before the lock does.
func TestLostBeforeTheValidityEnds(t *testing.T) {
	for name, act := range map[string]action{"silent": silent, "trickles": trickle} {
		var left time.Duration
		// a busy machine may wake this process late, yet not each time
		for n := 0; n < 5 && left <= 0; n++ {
			f := newFake(t, m{"renew_after_ms": 20, "validity_ms": 1500, "ttl_ms": 2000})
			f.on("PUT", act)
			left = lost(t, f, 1500*time.Millisecond)
			isTrue(t, left <= 201*time.Millisecond, name+": not too early")
		}
		isTrue(t, left > 0, name+": before the end")
	}
}

func TestNoRenewalAndNoLossAfterTheRelease(t *testing.T) {
	t.Parallel()
	f := newFake(t, m{"renew_after_ms": 1}).on("PUT", late(100*time.Millisecond, gone))
	client := newClient(t, redlockd.Config{}, f)
	for n := 0; n < 5; n++ {
		f.on("PUT", late(100*time.Millisecond, gone))
		lock := acquire(t, client, wanted())
		before := f.count("PUT")
		waitUntil(t, func() bool { return f.count("PUT") > before }, "an extend")
		must(t, lock.Release(background))
		sent := f.count("PUT")
		time.Sleep(150 * time.Millisecond) // for the answer, and for what is next
		equal(t, f.count("PUT"), sent)
		isTrue(t, errors.Is(lock.Err(), redlockd.ErrReleased), "no loss")
	}
}

func TestALockHasNoGoroutine(t *testing.T) {
	f := newFake(t, m{"renew_after_ms": 5})
	client := newClient(t, redlockd.Config{}, f)
	before := goroutines()
	var locks []*redlockd.Lock
	for n := 0; n < 20; n++ {
		locks = append(locks, acquire(t, client, redlockd.Options{
			Resources: []string{fmt.Sprint(n)}}))
	}
	waitUntil(t, func() bool { return f.count("PUT") >= 100 }, "renewals")
	// those of two requests, and of a timer
	isTrue(t, goroutines() <= before+4, "there is none for each lock")
	for _, lock := range locks {
		must(t, lock.Release(background))
	}
	waitUntil(t, func() bool { return goroutines() <= before }, "none is left")
}

func TestGoroutinesShareAClient(t *testing.T) {
	t.Parallel()
	f := newFake(t, m{"renew_after_ms": 2})
	client := newClient(t, redlockd.Config{}, f)
	var group sync.WaitGroup
	for n := 0; n < 8; n++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := 0; n < 10; n++ {
				lock, err := client.Acquire(background, wanted())
				if err != nil || lock.Check() != nil || lock.Release(background) != nil {
					t.Error("failed")
				}
			}
		}()
	}
	group.Wait()
	equal(t, f.count("DELETE"), 80)
}

// ---- release -------------------------------------------------------------------

// Over a kept connection that had ended, and a new one: the first may have done it.
func TestAReleaseThatWasSentTwiceMayFindTheLockGone(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil).on("DELETE", gone, cut)
	must(t, acquire(t, newClient(t, redlockd.Config{}, f), wanted()).Release(background))
	equal(t, f.count("DELETE"), 2)
}

func TestAContextThatHasEndedDoesNotKeepTheLock(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil)
	client := newClient(t, redlockd.Config{}, f)
	ctx, cancel := context.WithCancel(background)
	lock, err := client.Acquire(ctx, wanted())
	must(t, err)
	cancel()
	equal(t, redlockd.Cause(lock.Context()), context.Canceled)
	must(t, lock.Check()) // it is still ours
	must(t, lock.Release(ctx))
	equal(t, f.count("DELETE"), 1)

	ctx, cancel = context.WithCancel(background)
	// the second one finds it gone: the first may have done it
	f.on("DELETE", gone, func(r *request) {
		cancel()
		silent(r)
	})
	must(t, acquire(t, client, wanted()).Release(ctx))
	equal(t, f.count("DELETE"), 3)
}

// ---- Do ------------------------------------------------------------------------

func TestDo(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil)
	client := newClient(t, redlockd.Config{}, f)
	must(t, client.Do(background, wanted(), func(ctx context.Context, l *redlockd.Lock) error {
		must(t, ctx.Err())
		return l.Check()
	}))
	equal(t, f.count("DELETE"), 1)
	ours := errors.New("ours")
	err := client.Do(background, wanted(), func(context.Context, *redlockd.Lock) error {
		return ours
	})
	equal(t, err, ours)
	equal(t, f.count("DELETE"), 2)
	func() {
		defer func() { equal(t, recover(), "panic") }()
		_ = client.Do(background, wanted(), func(context.Context, *redlockd.Lock) error {
			panic("panic")
		})
	}()
	equal(t, f.count("DELETE"), 3)
}

func TestDoTellsOfALossAndOfWhatTheWorkSaid(t *testing.T) {
	t.Parallel()
	for _, want := range []error{nil, errors.New("ours"), context.Canceled} {
		f := newFake(t, m{"renew_after_ms": 20}).on("PUT", nil, gone)
		err := newClient(t, redlockd.Config{}, f).Do(background, wanted(),
			func(ctx context.Context, _ *redlockd.Lock) error {
				ends(t, ctx)
				return want
			})
		isTrue(t, errors.Is(err, redlockd.ErrLost), "lost")
		isTrue(t, want == nil || errors.Is(err, want), "and what the work said")
	}
}

func TestDoTellsLogfOfAReleaseThatFailed(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil).on("DELETE", cut)
	var logged []string
	client := newClient(t, redlockd.Config{Logf: func(text string, with ...any) {
		logged = append(logged, text)
	}}, f)
	must(t, client.Do(background, wanted(), func(context.Context, *redlockd.Lock) error {
		return nil
	}))
	equal(t, len(logged), 1)
}

// ---- Downgrade -----------------------------------------------------------------

func TestADowngradeThatFindsTheLockLost(t *testing.T) {
	t.Parallel()
	for _, act := range []action{gone, notOwner} {
		f := newFake(t, nil).on("PUT", nil, act)
		lock := acquire(t, newClient(t, redlockd.Config{}, f), wanted())
		err := lock.Downgrade(background)
		isTrue(t, errors.Is(err, redlockd.ErrLost), "lost")
		isTrue(t, lock.Context().Err() != nil, "and the work is told")
		isTrue(t, errors.Is(lock.Downgrade(background), redlockd.ErrLost), "lost")
	}
	f := newFake(t, m{"validity_ms": 600, "ttl_ms": 600}).on("PUT", noQuorum)
	lock := acquire(t, newClient(t, redlockd.Config{}, f), wanted())
	isTrue(t, errors.Is(lock.Downgrade(background), redlockd.ErrLost), "lost")
	must(t, acquire(t, newClient(t, redlockd.Config{}, newFake(t, nil)), wanted()).Release(background))
	released := acquire(t, newClient(t, redlockd.Config{}, newFake(t, nil)), wanted())
	must(t, released.Release(background))
	isTrue(t, errors.Is(released.Downgrade(background), redlockd.ErrReleased), "released")
}

func TestADowngradeThatIsCancelledIsDoneByTheNextRenewal(t *testing.T) {
	t.Parallel()
	f := newFake(t, m{"renew_after_ms": 500}).on("PUT", nil, noQuorum)
	lock := acquire(t, newClient(t, redlockd.Config{}, f), wanted())
	ctx, cancel := context.WithCancel(background)
	go func() {
		waitUntil(t, func() bool { return f.count("PUT") > 0 }, "a request")
		cancel()
	}()
	if err := lock.Downgrade(ctx); err != nil { // else it was faster
		equal(t, err, context.Canceled)
	}
	waitUntil(t, lock.Shared, "shared")
}

func TestDowngradesByOtherGoroutinesWhileItIsRenewed(t *testing.T) {
	t.Parallel()
	client := newClient(t, redlockd.Config{}, newFake(t, m{"renew_after_ms": 1}))
	for n := 0; n < 20; n++ {
		lock := acquire(t, client, wanted())
		ended := make(chan error)
		go func() { ended <- lock.Downgrade(background) }()
		must(t, <-ended)
		isTrue(t, strings.Contains(lock.Token(), "~"), "the new token")
		time.Sleep(10 * time.Millisecond)
		isTrue(t, strings.Contains(lock.Token(), "~"), "the new token stays")
		must(t, lock.Check())
		must(t, lock.Release(background))
	}
}

package user

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd.example/redlockd"
)

var never = m{"renew_after_ms": 60000, "validity_ms": 90000, "ttl_ms": 30000}

func TestExtendsWithTokenAndTTL(t *testing.T) {
	t.Parallel()
	f := newFake(t, m{"ttl_ms": 1234, "renew_after_ms": 20})
	lock := acquire(t, newClient(t, redlockd.Config{}, f), wanted())
	waitUntil(t, func() bool { return f.count("PUT") >= 3 }, "three renewals")
	put := f.of("PUT")[2]
	equal(t, put.path, "/locks/an~id/extend")
	equal(t, put.body, m{"ttl_ms": 1234})
	equal(t, put.header.Get("X-Lock-Token"), lock.Token())
}

func TestAnExtendCountsFromItsOwnBeginning(t *testing.T) {
	t.Parallel()
	f := newFake(t, m{"renew_after_ms": 10}).on("PUT", nil, late(time.Second, grant(never)))
	lock := acquire(t, newClient(t, redlockd.Config{}, f), wanted())
	isTrue(t, lock.Remaining() < 30*time.Second, "the old validity")
	waitUntil(t, func() bool { return lock.Remaining() > 30*time.Second }, "the new one")
	isTrue(t, lock.Remaining() <= 86*time.Second, "not from the answer")
}

func TestAnotherReplicaExtends(t *testing.T) {
	t.Parallel()
	for _, fails := range []action{noQuorum, silent, cut} {
		one := newFake(t, m{"renew_after_ms": 10, "ttl_ms": 4000, "validity_ms": 3900})
		two := newFake(t, never)
		one.on("PUT", fails)
		lock := acquire(t, newClient(t, redlockd.Config{}, one, two), wanted())
		waitUntil(t, func() bool { return lock.Remaining() > 8*time.Second }, "extended")
		must(t, lock.Check())
	}
}

func TestAnExtendIsRepeated(t *testing.T) {
	t.Parallel()
	f := newFake(t, m{"renew_after_ms": 20}).on("PUT", nil, noQuorum, cut, grant(never))
	lock := acquire(t, newClient(t, redlockd.Config{}, f), wanted())
	waitUntil(t, func() bool { return lock.Remaining() > 30*time.Second }, "extended")
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
	for name, act := range map[string]action{"refused": noQuorum, "silent": silent,
		"trickles": trickle, "max hold": problem(409, "max_hold_reached", nil)} {
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

func TestTheLockHadEnded(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil).on("DELETE", nil, notOwner)
	lock := acquire(t, newClient(t, redlockd.Config{}, f), wanted())
	isTrue(t, errors.Is(lock.Release(background), redlockd.ErrLost), "a loss")
}

func TestTheAnswerToAReleaseWasLost(t *testing.T) {
	t.Parallel()
	one, two := newFake(t, nil), newFake(t, nil)
	one.on("DELETE", nil, cut, cut) // over the kept connection, and a new one
	two.on("DELETE", nil, gone)
	lock := acquire(t, newClient(t, redlockd.Config{}, one, two), wanted())
	must(t, lock.Release(background))
	equal(t, two.count("DELETE"), 1)
}

func TestNobodyAnswersTheRelease(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil).on("DELETE", noQuorum)
	lock := acquire(t, newClient(t, redlockd.Config{}, f), wanted())
	err := lock.Release(background)
	isTrue(t, errors.Is(err, redlockd.ErrUnavailable), "unavailable")
	isTrue(t, strings.Contains(err.Error(), "not released"), err.Error())
	isTrue(t, !strings.Contains(err.Error(), lock.Token()), "no token")
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
	f.on("DELETE", nil, func(r *request) {
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

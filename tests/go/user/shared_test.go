package user

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"redlockd.example/redlockd"
)

var unknownField = problem(400, "invalid_request", nil)

func TestTheModeIsSent(t *testing.T) {
	t.Parallel()
	f := newFake(t, m{"renew_after_ms": 10})
	client := newClient(t, redlockd.Config{}, f)
	o := wanted()
	o.Shared = true
	lock := acquire(t, client, o)
	isTrue(t, lock.Shared(), "shared")
	waitUntil(t, func() bool { return f.count("PUT") >= 2 }, "renewals")
	must(t, lock.Downgrade(background)) // it is shared already
	equal(t, f.of("POST")[0].body["mode"], "shared")
	must(t, lock.Release(background))
	isTrue(t, !acquire(t, client, wanted()).Shared(), "exclusive")
	equal(t, f.of("POST")[1].body["mode"], nil)
}

func TestDowngradeUsesTheNewToken(t *testing.T) {
	t.Parallel()
	f := newFake(t, m{"renew_after_ms": 100, "ttl_ms": 1234})
	lock := acquire(t, newClient(t, redlockd.Config{}, f), wanted())
	exclusive, number := lock.Token(), lock.FencingToken()
	must(t, lock.Downgrade(background))
	shared := lock.Token()
	isTrue(t, lock.Shared() && shared != exclusive, "another token")
	_ = number
	begun := f.count("PUT")
	waitUntil(t, func() bool { return f.count("PUT") > begun+1 }, "renewals")
	puts := f.of("PUT")
	equal(t, puts[len(puts)-1].header.Get("X-Lock-Token"), shared)
	must(t, lock.Release(background))
	equal(t, f.of("DELETE")[0].header.Get("X-Lock-Token"), shared)
}

// besideARenewal: the renewal is answered after the downgrade.
func besideARenewal(t *testing.T, answer action) []*request {
	f := newFake(t, m{"renew_after_ms": 10})
	f.on("PUT", grant(never), late(500*time.Millisecond, answer))
	lock := acquire(t, newClient(t, redlockd.Config{}, f), wanted())
	waitUntil(t, func() bool { return f.count("PUT") > 0 }, "a renewal")
	must(t, lock.Downgrade(background))
	shared := lock.Token()
	equal(t, f.count("PUT"), 2)
	time.Sleep(time.Second) // for the answer to the renewal
	must(t, lock.Check())
	equal(t, lock.Token(), shared)
	puts := f.of("PUT")
	equal(t, puts[0].body["mode"], nil)
	equal(t, puts[1].body["mode"], "shared")
	must(t, lock.Release(background))
	equal(t, f.of("DELETE")[0].header.Get("X-Lock-Token"), shared)
	return puts[2:]
}

func TestADowngradeBesideARenewal(t *testing.T) {
	t.Parallel()
	again := besideARenewal(t, notOwner)
	equal(t, len(again), 1)
	equal(t, again[0].body["mode"], "shared")
	isTrue(t, strings.Contains(again[0].header.Get("X-Lock-Token"), "~"), "the new token")
	old := grant(m{"token": "1795221641865000.0123456789abcdef",
		"validity_ms": 5000, "renew_after_ms": 60000})
	equal(t, len(besideARenewal(t, old)), 0)
}

func TestADowngradeIsRepeatedAtTheNextReplica(t *testing.T) {
	t.Parallel()
	one, two := newFake(t, nil), newFake(t, nil)
	one.on("PUT", cut)
	two.on("PUT", nil, noQuorum)
	lock := acquire(t, newClient(t, redlockd.Config{}, one, two), wanted())
	exclusive := lock.Token()
	must(t, lock.Downgrade(background))
	for _, put := range append(one.of("PUT"), two.of("PUT")...) {
		equal(t, put.header.Get("X-Lock-Token"), exclusive)
		equal(t, put.body["mode"], "shared")
	}
}

func TestADowngradeThatFindsTheLockLost(t *testing.T) {
	t.Parallel()
	for _, act := range []action{gone, notOwner} {
		f := newFake(t, nil).on("PUT", nil, act)
		lock := acquire(t, newClient(t, redlockd.Config{}, f), wanted())
		err := lock.Downgrade(background)
		isTrue(t, errors.Is(err, redlockd.ErrLost), "lost")
		ends(t, lock.Context())
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

func TestADowngradeThatIsRefused(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil).on("PUT", nil, problem(409, "max_hold_reached", nil))
	lock := acquire(t, newClient(t, redlockd.Config{}, f), wanted())
	var refused *redlockd.RefusedError
	isTrue(t, errors.As(lock.Downgrade(background), &refused), "refused")
	equal(t, refused.Code, "max_hold_reached")
	isTrue(t, !lock.Shared() && lock.Check() == nil, "still exclusive")

	one, two := newFake(t, m{"renew_after_ms": 300}), newFake(t, nil)
	one.on("PUT", nil, unknownField)
	two.on("PUT", nil, unknownField)
	lock = acquire(t, newClient(t, redlockd.Config{}, one, two), wanted())
	isTrue(t, errors.Is(lock.Downgrade(background), redlockd.ErrRefused), "refused")
	waitUntil(t, func() bool { return one.count("PUT")+two.count("PUT") > 2 }, "a renewal")
	equal(t, append(one.of("PUT"), two.of("PUT")[1:]...)[1].body["mode"], nil)
	must(t, lock.Check())

	one, two = newFake(t, nil), newFake(t, nil)
	one.on("PUT", unknownField)
	lock = acquire(t, newClient(t, redlockd.Config{}, one, two), wanted())
	must(t, lock.Downgrade(background)) // one server is passed over
	isTrue(t, lock.Shared(), "shared")
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

// SPDX-License-Identifier: MIT

package user

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	redlockd "github.com/redlockd/redlockd/api/clients/go"
)

func TestWhatIsSentAndWhatIsTold(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil)
	lock := acquire(t, newClient(t, redlockd.Config{}, f), redlockd.Options{
		Resources: []string{"order:42"}, TTL: 30 * time.Second,
		Wait: 5 * time.Second, Owner: "web-3"})
	isTrue(t, lock.FencingToken() > 1_795_221_641_864_999, "the number")
	isTrue(t, lock.Remaining() > 20*time.Second, "the validity")
	must(t, lock.Check())
	token := lock.Token()
	must(t, lock.Release(background))
	all := f.of("")
	equal(t, len(all), 2)
	post, release := all[0], all[1]
	wait := post.body["wait_ms"].(float64)
	isTrue(t, wait > 4000 && wait <= 5000, "the wait")
	delete(post.body, "wait_ms")
	equal(t, post.body, m{"resource": "order:42", "ttl_ms": 30000, "owner": "web-3"})
	equal(t, post.method+post.path, "POST/locks")
	equal(t, release.method+release.path, "DELETE/locks/an~id")
	equal(t, release.header.Get("X-Lock-Token"), token)
	if err := lock.Check(); !errors.Is(err, redlockd.ErrReleased) {
		t.Fatal(err)
	}
	equal(t, lock.Remaining(), 0*time.Second)
	equal(t, lock.Context().Err(), context.Canceled)
	equal(t, redlockd.Cause(lock.Context()), context.Canceled)
}

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	client := newClient(t, redlockd.Config{})
	for _, o := range []redlockd.Options{
		{}, {Resources: []string{"a", "b"}, Limit: 2},
		{Resources: []string{"a"}, Permits: 2},
		{Resources: []string{"a"}, Limit: 2, Shared: true},
		{Resources: []string{"a"}, TTL: -1}, {Resources: []string{"a"}, TTL: 1},
		{Resources: []string{"a"}, Wait: -2}} {
		if _, err := client.Acquire(background, o); err == nil ||
			errors.Is(err, redlockd.ErrUnavailable) {
			t.Fatal(o, err)
		}
	}
}

func TestWhoHoldsItIsTold(t *testing.T) {
	t.Parallel()
	for text, heldBy := range map[string]m{"by web-3": {"owner": "web-3"},
		"by a reader": {"readers": 1}, "by 2 readers": {"readers": 2},
		"too few of 3 permits are free": {}} {
		o := redlockd.Options{Resources: []string{"a"}, Wait: redlockd.NoWait}
		if len(heldBy) == 0 {
			o.Limit = 3
		}
		f := newFake(t, nil).on("POST", problem(409, "lock_held", m{"held_by": heldBy}))
		_, err := newClient(t, redlockd.Config{}, f).Acquire(background, o)
		isTrue(t, errors.Is(err, redlockd.ErrHeld) &&
			strings.HasSuffix(err.Error(), text), fmt.Sprint(err))
	}
}

func TestTheAnswerMayComeAsLateAsTheWaitEnds(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil).on("POST", nil, late(1500*time.Millisecond, usual))
	o := wanted()
	o.Wait = 30 * time.Second
	acquire(t, newClient(t, redlockd.Config{Timeout: time.Second}, f), o)
	equal(t, f.count("POST"), 1)
}

// The same default as in the other packages; the context limits it.
func TestWithoutAWaitItWaitsUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil).on("POST", heldBy)
	ctx, cancel := context.WithTimeout(background, 300*time.Millisecond)
	defer cancel()
	_, err := newClient(t, redlockd.Config{}, f).Acquire(ctx,
		redlockd.Options{Resources: []string{"a"}})
	equal(t, err, context.DeadlineExceeded)
	equal(t, f.of("POST")[0].body["wait_ms"], 10000)
}

func TestARefusalThatIsNotFromRedlockdSaysWhereItIsFrom(t *testing.T) {
	t.Parallel()
	for kind, shown := range map[string]string{"text/html": "text/html",
		"a\x9bb" + strings.Repeat("c", 99): "a?b" + strings.Repeat("c", 77) + ")"} {
		f := newFake(t, nil).on("POST", func(r *request) {
			r.writer.Header().Set("Content-Type", kind)
			r.answerText(403, `{"error":"no"}`)
		})
		url := strings.Replace(f.URL, "://", "://me:secret@", 1)
		c, err := redlockd.New(redlockd.Config{URLs: []string{url}})
		must(t, err)
		_, err = c.Acquire(background, wanted())
		isTrue(t, strings.Contains(err.Error(), " "+f.URL+","), err.Error())
		isTrue(t, strings.Contains(err.Error(), shown), err.Error())
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	other := newFake(t, nil)
	f := newFake(t, nil).on("POST", func(r *request) {
		r.writer.Header().Set("Location", other.URL+"/locks")
		r.answerText(307, "")
	})
	_, err := newClient(t, redlockd.Config{Token: "secret"}, f).Acquire(
		background, wanted())
	isTrue(t, errors.Is(err, redlockd.ErrRefused), "refused")
	equal(t, len(other.of("")), 0)
}

// ---- a context that ends -------------------------------------------------------

// An answer with a grant was lost, or is on its way: the lock is got by the same
// key, and released.
func TestAContextThatEndsLeavesNoLock(t *testing.T) {
	t.Parallel()
	for name, script := range map[string][]action{
		"on its way": {late(time.Second, usual)},
		"lost":       {cutAfter(usual), silent},
		"silent":     {silent},
	} {
		f := newFake(t, nil).on("POST", grant(m{"token": "99.fedcba9876543210"}), script...)
		client := newClient(t, redlockd.Config{}, f)
		ctx, cancel := context.WithTimeout(background, 400*time.Millisecond)
		began := time.Now()
		lock, err := client.Acquire(ctx, wanted())
		cancel()
		isTrue(t, lock == nil && errors.Is(err, context.DeadlineExceeded), name)
		isTrue(t, time.Since(began) < 20*time.Second, name)
		posts, deletes := f.of("POST"), f.of("DELETE")
		last := posts[len(posts)-1]
		equal(t, last.header.Get("Idempotency-Key"), posts[0].header.Get("Idempotency-Key"))
		equal(t, []any{last.body["wait_ms"], last.body["ttl_ms"]}, []any{nil, 100})
		equal(t, len(deletes), 1)
		equal(t, deletes[0].header.Get("X-Lock-Token"), "99.fedcba9876543210")
	}
}

func TestAContextThatEndsClosesTheConnection(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil).on("POST", heldBy, silent)
	ctx, cancel := context.WithCancel(background)
	go func() {
		waitUntil(t, func() bool { return f.count("POST") > 0 }, "a request")
		cancel()
	}()
	_, err := newClient(t, redlockd.Config{}, f).Acquire(ctx, wanted())
	isTrue(t, errors.Is(err, context.Canceled), "cancelled")
	waitUntil(t, f.hasLeft, "the connection was closed")
	equal(t, f.count("DELETE"), 0)
	ended, stop := context.WithCancel(background)
	stop()
	before := len(f.of(""))
	_, err = newClient(t, redlockd.Config{}, f).Acquire(ended, wanted())
	equal(t, err, context.Canceled)
	equal(t, len(f.of("")), before)
}

func TestAGrantThatComesWithTheEndIsReleased(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(background)
	f := newFake(t, nil).on("POST", nil, func(r *request) {
		usual(r)
		r.writer.(http.Flusher).Flush()
		cancel()
	})
	lock, err := newClient(t, redlockd.Config{}, f).Acquire(ctx, wanted())
	if err == nil { // the answer was faster than the end
		must(t, lock.Release(background))
	}
	equal(t, f.count("DELETE"), 1)
}

// ---- the servers ---------------------------------------------------------------

func TestAServerThatHangsHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	one, two := newFake(t, nil), newFake(t, nil)
	client := newClient(t, redlockd.Config{}, one, two)
	o := wanted()
	must(t, acquire(t, client, o).Release(background))
	one.on("POST", silent).on("GET", silent)
	go func() {
		_, _ = client.Acquire(background, redlockd.Options{
			Resources: []string{"b"}, Wait: redlockd.NoWait})
	}()
	time.Sleep(700 * time.Millisecond)
	for n := 0; n < 5; n++ {
		began := time.Now()
		must(t, acquire(t, client, o).Release(background))
		isTrue(t, time.Since(began) < 2*time.Second, "it is not held up")
		time.Sleep(400 * time.Millisecond) // the probe hangs, too
	}
	isTrue(t, one.count("GET") >= 1, "it was probed")
	equal(t, one.count("POST"), 2)
	// when it is back, a probe finds out, and no lock
	one.on("POST", nil).on("GET", page(200, "{}"))
	waitUntil(t, func() bool {
		must(t, acquire(t, client, o).Release(background))
		return one.count("POST") > 2
	}, "it is asked again")
}

func TestNoAnswerSaysWhy(t *testing.T) {
	t.Parallel()
	closed := newFake(t, nil)
	closed.Close()
	for _, row := range []struct {
		f       *fake
		timeout time.Duration
		reason  string
	}{
		{closed, 0, "no answer: the connection was refused"},
		{newFake(t, nil).on("POST", cut), 0, "no answer: the connection was closed"},
		{newFake(t, nil).on("POST", silent), 200 * time.Millisecond,
			"no answer: it did not come in time"},
	} {
		client := newClient(t, redlockd.Config{Timeout: row.timeout}, row.f)
		_, err := client.Acquire(background, redlockd.Options{
			Resources: []string{"a"}, Wait: redlockd.NoWait})
		isTrue(t, errors.Is(err, redlockd.ErrUnavailable), "unavailable")
		isTrue(t, strings.Contains(err.Error(), row.reason), err.Error())
	}
}

func TestURLs(t *testing.T) {
	f := newFake(t, nil)
	t.Setenv("REDLOCKD_URL", f.URL+"/ , ")
	acquire(t, newClient(t, redlockd.Config{}), wanted())
	equal(t, f.count("POST"), 1)
	for _, urls := range [][]string{{""}, {"localhost:8080"}, {"ftp://a"}, {"http://"}} {
		if _, err := redlockd.New(redlockd.Config{URLs: urls}); err == nil {
			t.Fatal(urls)
		}
	}
}

func TestTheConnectionsOfACrowdAreKept(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil)
	client := newClient(t, redlockd.Config{}, f)
	crowd := func() {
		// each holds its lock until all have one: so all connections are in use
		var acquired, done sync.WaitGroup
		acquired.Add(100)
		for n := 0; n < 100; n++ {
			done.Add(1)
			go func() {
				defer done.Done()
				lock, err := client.Acquire(background, wanted())
				acquired.Done()
				if err == nil {
					acquired.Wait()
					_ = lock.Release(background)
				}
			}()
		}
		done.Wait()
	}
	for n := 0; n < 5; n++ {
		crowd()
	}
	links := map[string]bool{}
	for _, one := range f.of("") {
		links[one.client] = true
	}
	isTrue(t, len(links) <= 110, fmt.Sprint(len(links), " connections"))
}

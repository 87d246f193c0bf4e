package user

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockd.example/redlockd"
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

func TestPermits(t *testing.T) {
	t.Parallel()
	f := newFake(t, m{"renew_after_ms": 10}).on("POST", nil, grant(m{"slots": []int{0, 2}}))
	lock := acquire(t, newClient(t, redlockd.Config{}, f), redlockd.Options{
		Resources: []string{"pool"}, Limit: 3, Permits: 2})
	waitUntil(t, func() bool { return f.count("PUT") > 1 }, "extends")
	equal(t, lock.Slots(), []int{0, 2})
	body := f.of("POST")[0].body
	equal(t, []any{body["limit"], body["permits"]}, []any{3, 2})
	one := newClient(t, redlockd.Config{}, f)
	acquire(t, one, redlockd.Options{Resources: []string{"pool"}, Limit: 3})
	equal(t, f.of("POST")[1].body["permits"], 1)
	f.on("POST", problem(409, "lock_held", nil))
	_, err := one.Acquire(background, redlockd.Options{
		Resources: []string{"pool"}, Limit: 3, Wait: redlockd.NoWait})
	isTrue(t, strings.Contains(err.Error(), "too few of 3 permits"), err.Error())
}

func TestSeveralResources(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil)
	acquire(t, newClient(t, redlockd.Config{}, f),
		redlockd.Options{Resources: []string{"b", "a"}})
	body := f.of("POST")[0].body
	equal(t, body["resources"], []string{"b", "a"})
	equal(t, body["resource"], nil)
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

func TestRepeatsHaveOneKeyAndEachAcquireItsOwn(t *testing.T) {
	t.Parallel()
	one, two := newFake(t, nil), newFake(t, nil)
	one.on("POST", nil, cut)
	two.on("POST", nil, noQuorum)
	client := newClient(t, redlockd.Config{}, one, two)
	acquire(t, client, wanted())
	posts := append(one.of("POST"), two.of("POST")...)
	equal(t, len(posts), 3)
	equal(t, one.count("POST"), 2)
	keys := map[string]bool{}
	for _, post := range posts {
		keys[post.header.Get("Idempotency-Key")] = true
	}
	equal(t, len(keys), 1)
	for key := range keys {
		isTrue(t, regexp.MustCompile("^[A-Za-z0-9_-]{16,64}$").MatchString(key), key)
	}
	acquire(t, client, wanted())
	last := append(one.of("POST"), two.of("POST")...)
	for _, post := range last {
		keys[post.header.Get("Idempotency-Key")] = true
	}
	equal(t, len(keys), 2)
}

func TestAReplicaThatFailedIsAskedLast(t *testing.T) {
	t.Parallel()
	one, two := newFake(t, nil), newFake(t, nil)
	one.on("POST", cut)
	client := newClient(t, redlockd.Config{}, one, two)
	for n := 0; n < 3; n++ {
		must(t, acquire(t, client, wanted()).Release(background))
	}
	equal(t, one.count("POST"), 1)
	equal(t, two.count("POST"), 3)
}

func TestTheAnswerMayComeAsLateAsTheWaitEnds(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil).on("POST", nil, late(1500*time.Millisecond, usual))
	o := wanted()
	o.Wait = 30 * time.Second
	acquire(t, newClient(t, redlockd.Config{Timeout: time.Second}, f), o)
	equal(t, f.count("POST"), 1)
}

func TestHeld(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil).on("POST", heldBy)
	client := newClient(t, redlockd.Config{}, f)
	_, err := client.Acquire(background, redlockd.Options{Resources: []string{"a"}, Wait: redlockd.NoWait})
	equal(t, f.count("POST"), 1)
	equal(t, f.of("POST")[0].body["wait_ms"], nil)
	var held *redlockd.HeldError
	isTrue(t, errors.As(err, &held) && errors.Is(err, redlockd.ErrHeld), "held")
	equal(t, []any{held.Owner, held.Remaining, held.FencingToken},
		[]any{"web-3", 1500 * time.Millisecond, 7})
	equal(t, err, "a: the lock is held by web-3")
	began := time.Now()
	o := wanted()
	o.Wait = time.Second
	_, err = client.Acquire(background, o)
	isTrue(t, errors.Is(err, redlockd.ErrHeld), "held")
	isTrue(t, time.Since(began) >= time.Second, "it waited")
	// retry_after_ms was heeded: one every 20 ms, and no more
	isTrue(t, f.count("POST") <= 53, "no more")
	f.on("POST", nil, heldBy, heldBy, heldBy)
	acquire(t, client, wanted())
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

func TestReadersAreTold(t *testing.T) {
	t.Parallel()
	for readers, text := range map[int]string{1: "by a reader", 2: "by 2 readers"} {
		f := newFake(t, nil).on("POST", problem(409, "lock_held",
			m{"held_by": m{"mode": "shared", "readers": readers}}))
		_, err := newClient(t, redlockd.Config{}, f).Acquire(background,
			redlockd.Options{Resources: []string{"a"}, Wait: redlockd.NoWait})
		var held *redlockd.HeldError
		isTrue(t, errors.As(err, &held), "held")
		equal(t, held.Readers, readers)
		isTrue(t, strings.Contains(err.Error(), text), err.Error())
	}
}

func TestAWrongRequestIsNotRepeated(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil).on("POST", problem(400, "invalid_request", nil))
	_, err := newClient(t, redlockd.Config{}, f).Acquire(background, wanted())
	var refused *redlockd.RefusedError
	isTrue(t, errors.As(err, &refused) && errors.Is(err, redlockd.ErrRefused), "refused")
	equal(t, refused.Code, "invalid_request")
	equal(t, len(f.of("")), 1)
}

func TestARefusalThatIsNotFromRedlockdSaysWhereItIsFrom(t *testing.T) {
	t.Parallel()
	for _, status := range []int{302, 403, 404, 409} {
		for kind, shown := range map[string]string{"text/html": "text/html",
			"a\x9bb" + strings.Repeat("c", 99): "a?b" + strings.Repeat("c", 77)} {
			act := func(r *request) {
				r.writer.Header().Set("Content-Type", kind)
				r.answerText(status, `{"error":"no"}`)
			}
			f := newFake(t, nil).on("POST", act).on("GET", act)
			url := strings.Replace(f.URL, "://", "://me:password@", 1)
			c, err := redlockd.New(redlockd.Config{URLs: []string{url}})
			must(t, err)
			_, err = c.Acquire(background, wanted())
			text := fmt.Sprint(": ", status, " from ", f.URL,
				", not from redlockd (", shown, ")")
			equal(t, err.Error(), "a"+text)
			_, err = c.Get(background, "a")
			isTrue(t, strings.HasSuffix(err.Error(), text), err.Error())
		}
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

func TestUnavailableOnceEachReplicaFailed(t *testing.T) {
	t.Parallel()
	one, two := newFake(t, nil), newFake(t, nil)
	one.on("POST", cut)
	two.on("POST", cut)
	_, err := newClient(t, redlockd.Config{}, one, two).Acquire(background,
		redlockd.Options{Resources: []string{"a"}, Wait: redlockd.NoWait})
	isTrue(t, errors.Is(err, redlockd.ErrUnavailable), "unavailable")
	equal(t, one.count("POST")+two.count("POST"), 3)
}

func TestWaitsForAServerToo(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil).on("POST", nil, noQuorum, page(502, "<html>"),
		page(201, `{"id":"an~id","tok`), problem(429, "too_many_waiters", nil),
		problem(409, "too_many_readers", nil))
	acquire(t, newClient(t, redlockd.Config{}, f), wanted())
	equal(t, f.count("POST"), 6)
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

func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil)
	client := newClient(t, redlockd.Config{}, f)
	for n := 0; n < 10; n++ {
		must(t, acquire(t, client, wanted()).Release(background))
	}
	links := map[string]bool{}
	for _, one := range f.of("") {
		links[one.client] = true
	}
	equal(t, len(links), 1)
}

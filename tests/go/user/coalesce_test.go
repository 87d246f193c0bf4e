// SPDX-License-Identifier: MIT

package user

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	redlockd "github.com/redlockd/redlockd/api/clients/go"
)

// crowd is a client whose two slots are taken, so that what is asked meanwhile
// is collected, until it goes.
type crowd struct {
	*fake
	client *redlockd.Client
	gate   chan struct{}
	busy   sync.WaitGroup
	all    sync.WaitGroup
	errors chan error
}

func resourceOf(r *request) string {
	resource, _ := r.body["resource"].(string)
	return resource
}

func newCrowd(t *testing.T, act action) *crowd {
	return newCrowdOf(t, redlockd.Config{}, act)
}

// newCrowdOf answers acquires with act, but for those that take the slots.
func newCrowdOf(t *testing.T, config redlockd.Config, act action) *crowd {
	c := &crowd{gate: make(chan struct{}), errors: make(chan error, 1000)}
	c.fake = newFake(t, nil).on("POST", func(r *request) {
		if strings.HasPrefix(resourceOf(r), "busy") {
			<-c.gate
			usual(r)
		} else {
			act(r)
		}
	})
	c.client = newClient(t, config, c.fake)
	for n := 0; n < 2; n++ {
		c.busy.Add(1)
		go func(n int) {
			defer c.busy.Done()
			_, _ = c.client.Acquire(background, at(fmt.Sprint("busy", n)))
		}(n)
	}
	waitUntil(t, func() bool { return c.count("POST") == 2 }, "the slots are taken")
	return c
}

// at is a lock that is not waited for.
func at(name string) redlockd.Options {
	return redlockd.Options{Resources: []string{name}, Wait: redlockd.NoWait}
}

// asks acquires locks at once, and calls then with each.
func (c *crowd) asks(then func(*redlockd.Lock, error), all ...redlockd.Options) {
	for _, options := range all {
		c.all.Add(1)
		go func(options redlockd.Options) {
			defer c.all.Done()
			lock, err := c.client.Acquire(background, options)
			c.errors <- err
			then(lock, err)
		}(options)
	}
	time.Sleep(50 * time.Millisecond) // for them to be collected
}

func nothing(*redlockd.Lock, error) {}

// goes frees the slots, and waits for all.
func (c *crowd) goes() {
	close(c.gate)
	c.all.Wait()
	c.busy.Wait()
}

func several(count int) (all []redlockd.Options) {
	for n := 0; n < count; n++ {
		all = append(all, at(fmt.Sprint("name", n)))
	}
	return all
}

func TestWhatIsAskedMeanwhileGoesTogether(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, usual)
	c.asks(func(lock *redlockd.Lock, err error) {
		if err != nil || lock.Release(background) != nil {
			t.Error(err)
		}
	}, several(150)...)
	c.goes()
	equal(t, c.count("POST"), 152)
	equal(t, c.count("DELETE"), 150)
	alone := 0
	for _, one := range append(c.of("POST"), c.of("DELETE")...) {
		if one.batch == nil {
			alone++
		}
	}
	isTrue(t, c.count("BATCH") >= 3, "no more than 100 in one")
	isTrue(t, alone+c.count("BATCH") < 75, fmt.Sprint(alone, " alone, ",
		c.count("BATCH"), " batches"))
	links := map[string]bool{}
	for _, one := range c.of("") {
		links[one.client] = true
	}
	isTrue(t, len(links) <= 4, fmt.Sprint(len(links), " connections"))
}

// The answer to the first batch is lost: each is repeated with its own key.
func TestABatchWithoutAnAnswerIsRepeatedWithTheSameKeys(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, usual)
	c.on("BATCH", nil, func(r *request) {
		r.decide()
		cut(r)
	})
	c.asks(nothing, several(8)...)
	c.goes()
	keys := map[string]map[string]int{}
	for _, post := range c.of("POST") {
		name := resourceOf(post)
		if keys[name] == nil {
			keys[name] = map[string]int{}
		}
		keys[name][post.header.Get("Idempotency-Key")]++
	}
	twice := 0
	for name, of := range keys {
		equal(t, len(of), 1)
		for _, count := range of {
			if count == 2 && strings.HasPrefix(name, "name") {
				twice++
			}
		}
	}
	isTrue(t, twice > 1, "a batch was repeated")
	for n := 0; n < 8; n++ {
		must(t, <-c.errors)
	}
}

// The server has carried out a batch, and ended the kept connection. It is asked
// again at once: that is no failure of the server, and a release finds no loss.
func TestABatchOverAConnectionThatEndedIsRepeated(t *testing.T) {
	t.Parallel()
	logged := make(chan string, 100)
	c := newCrowdOf(t, redlockd.Config{Logf: func(format string, more ...any) {
		logged <- fmt.Sprintf(format, more...)
	}}, usual)
	var released sync.Map // tokens
	cutBatch := func(r *request) {
		for _, one := range r.operations() {
			released.Store(one.header.Get("X-Lock-Token"), true)
		}
		cut(r)
	}
	c.on("BATCH", nil, cutBatch)
	locks := make(chan *redlockd.Lock, 8)
	c.asks(func(lock *redlockd.Lock, err error) { locks <- lock }, several(8)...)
	c.goes()
	for n := 0; n < 8; n++ {
		must(t, <-c.errors)
	}
	equal(t, len(logged), 0)
	c.on("BATCH", nil, cutBatch)
	c.on("DELETE", func(r *request) {
		if _, isSo := released.Load(r.header.Get("X-Lock-Token")); isSo {
			problem(404, "lock_not_found", nil)(r)
			return
		}
		time.Sleep(100 * time.Millisecond) // others are collected
		usual(r)
	})
	for n := 0; n < 8; n++ {
		go func(lock *redlockd.Lock) {
			c.errors <- lock.Release(background)
		}(<-locks)
	}
	for n := 0; n < 8; n++ {
		must(t, <-c.errors)
	}
}

func TestABatchThatIsRefusedGoesOneByOne(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, usual)
	c.on("BATCH", problem(404, "no", nil))
	c.asks(nothing, several(6)...)
	c.goes()
	isTrue(t, c.count("BATCH") > 0, "a batch")
	equal(t, c.count("POST"), 8)
	for n := 0; n < 6; n++ {
		must(t, <-c.errors)
	}
}

func TestARequestThatHangsFreesItsSlot(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, usual)
	c.asks(nothing, several(20)...)
	c.all.Wait() // the others still hang
	for n := 0; n < 20; n++ {
		must(t, <-c.errors)
	}
	c.goes()
}

func TestWhatIsCancelledInTheQueueIsNeverSent(t *testing.T) {
	t.Parallel()
	isSent := true
	// on a busy machine its turn may come before it is cancelled
	for n := 0; n < 5 && isSent; n++ {
		c := newCrowd(t, usual)
		c.asks(nothing, several(3)...)
		left := c.leaves()
		time.Sleep(20 * time.Millisecond)
		began := time.Now()
		left.cancel()
		<-left.ended
		isSent = time.Since(began) > 300*time.Millisecond || len(left.posts()) > 0
		c.goes()
		isSent = isSent || len(left.posts()) > 0 || c.count("DELETE") > 0
	}
	isTrue(t, !isSent, "it is taken out at once")
}

// leaver acquires a lock, and leaves before it has it.
type leaver struct {
	crowd  *crowd
	cancel context.CancelFunc
	ended  chan error
}

func (c *crowd) leaves() *leaver {
	ctx, cancel := context.WithCancel(background)
	l := &leaver{c, cancel, make(chan error, 1)}
	go func() {
		_, err := c.client.Acquire(ctx, at("left"))
		l.ended <- err
	}()
	return l
}

// posts are its requests.
func (l *leaver) posts() (found []*request) {
	for _, post := range l.crowd.of("POST") {
		if resourceOf(post) == "left" {
			found = append(found, post)
		}
	}
	return found
}

// It returns at once. When the grant comes, or by its key if none does, the lock
// is released.
func TestWhatIsCancelledInABatchIsReleasedLater(t *testing.T) {
	t.Parallel()
	for _, isLost := range []bool{false, true} {
		c := newCrowd(t, usual)
		answer := make(chan struct{})
		var once sync.Once
		goes := func() { once.Do(func() { close(answer) }) }
		defer goes()
		answers := func(r *request) {
			results := r.decide()
			<-answer
			if isLost {
				cut(r)
			} else {
				r.answer(200, m{"results": results})
			}
		}
		if c.on("BATCH", nil, answers); isLost {
			// over both connections that are kept, and over a new one
			c.on("BATCH", nil, answers, answers, answers)
		}
		c.asks(nothing, several(3)...)
		left := c.leaves()
		time.Sleep(20 * time.Millisecond)
		close(c.gate)
		waitUntil(t, func() bool { return len(left.posts()) == 1 }, "it is sent")
		if left.posts()[0].batch == nil { // the machine is busy: its turn came early
			goes()
			continue
		}
		began := time.Now()
		left.cancel()
		equal(t, <-left.ended, context.Canceled)
		isTrue(t, time.Since(began) < 2*time.Second, "at once")
		equal(t, c.count("DELETE"), 0)
		goes()
		waitUntil(t, func() bool { return c.count("DELETE") == 1 }, "released")
		c.all.Wait()
		posts := left.posts()
		equal(t, len(posts) > 1, isLost)
		if last := posts[len(posts)-1]; isLost {
			equal(t, last.header.Get("Idempotency-Key"),
				posts[0].header.Get("Idempotency-Key"))
			equal(t, last.body["ttl_ms"], 100)
		}
	}
}

// Close closes what is idle: calls go on.
func TestCloseWithCollectedOperations(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, usual)
	c.asks(nothing, several(5)...)
	c.client.Close()
	c.goes()
	for n := 0; n < 5; n++ {
		must(t, <-c.errors)
	}
}

func TestRenewalsGoTogether(t *testing.T) {
	t.Parallel()
	f := newFake(t, m{"renew_after_ms": 500})
	client := newClient(t, redlockd.Config{}, f)
	var all sync.WaitGroup
	for n := 0; n < 150; n++ {
		all.Add(1)
		go func(n int) {
			defer all.Done()
			_, err := client.Acquire(background, at(fmt.Sprint("name", n)))
			if err != nil {
				t.Error(err)
			}
		}(n)
	}
	all.Wait()
	waitUntil(t, func() bool { return f.count("PUT") >= 600 }, "renewals")
	batches := map[*request]bool{}
	alone := 0
	for _, put := range f.of("PUT") {
		if put.batch != nil {
			batches[put.batch] = true
		} else {
			alone++
		}
	}
	isTrue(t, alone+len(batches) < 150, fmt.Sprint(alone, " alone, ", len(batches)))
}

func TestAnotherTokenIsReadForOperationsOfABatch(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := write(t, folder, "token", token)
	c := newCrowdOf(t, redlockd.Config{TokenFile: file}, knows(nextToken))
	write(t, folder, "token", nextToken)
	c.asks(nothing, several(5)...)
	c.goes()
	for n := 0; n < 5; n++ {
		must(t, <-c.errors)
	}
	isTrue(t, c.count("BATCH") > 0, "a batch")
}

func TestWhatIsCancelledLeavesNoGoroutine(t *testing.T) {
	before := goroutines()
	c := newCrowd(t, usual)
	c.asks(nothing, several(2)...)
	left := c.leaves()
	time.Sleep(20 * time.Millisecond)
	left.cancel()
	<-left.ended
	c.goes()
	waitUntil(t, func() bool { return goroutines() <= before }, "none is left")
}

// givingBack returns once an acquire was cancelled whose batch is not answered
// before answer is closed.
func givingBack(t *testing.T, answer chan struct{}) *crowd {
	for n := 0; n < 5; n++ { // on a busy machine its turn may come early, and alone
		c := newCrowd(t, usual)
		c.on("BATCH", nil, func(r *request) {
			results := r.decide()
			<-answer
			r.answer(200, m{"results": results})
		})
		c.asks(nothing, several(3)...)
		left := c.leaves()
		time.Sleep(20 * time.Millisecond)
		close(c.gate)
		waitUntil(t, func() bool { return len(left.posts()) == 1 }, "it is sent")
		isBatch := left.posts()[0].batch != nil
		left.cancel()
		<-left.ended
		if isBatch {
			equal(t, c.count("DELETE"), 0)
			return c
		}
	}
	t.Fatal("it never went with others")
	return nil
}

func TestCloseWaitsForWhatIsGivenBack(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	c := givingBack(t, answer)
	time.AfterFunc(300*time.Millisecond, func() { close(answer) })
	c.client.Close()
	equal(t, c.count("DELETE"), 1)
	began := time.Now()
	c.client.Close()
	isTrue(t, time.Since(began) < time.Second, "nothing is left to wait for")
}

func TestCloseWaitsForTwoSecondsAtMost(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	defer close(answer)
	c := givingBack(t, answer)
	began := time.Now()
	c.client.Close()
	took := time.Since(began)
	isTrue(t, took > 1900*time.Millisecond && took < 4*time.Second, took.String())
}

func TestARenewalThatIsQueuedEndsWithTheRelease(t *testing.T) {
	t.Parallel()
	renewals := 1
	// on a busy machine its turn may come before the release
	for n := 0; n < 5 && renewals > 0; n++ {
		c := newCrowd(t, grant(m{"renew_after_ms": 50}))
		c.goes()
		c.gate = make(chan struct{})
		lock := acquire(t, c.client, at("name"))
		c.busy.Add(2)
		for k := 0; k < 2; k++ {
			go func(k int) {
				defer c.busy.Done()
				_, _ = c.client.Acquire(background, at(fmt.Sprint("busy again", k)))
			}(k)
		}
		waitUntil(t, func() bool { return c.count("POST") == 5 }, "the slots are taken")
		time.Sleep(100 * time.Millisecond)
		ended := make(chan error)
		go func() { ended <- lock.Release(background) }()
		time.Sleep(20 * time.Millisecond)
		close(c.gate)
		must(t, <-ended)
		c.busy.Wait()
		renewals = c.count("PUT")
	}
	equal(t, renewals, 0)
}

// SPDX-License-Identifier: MIT

//go:build live

// Package live has tests over real servers, those in REDLOCKD_URL.
package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	redlockd "github.com/redlockd/redlockd/api/clients/go"
)

const workers, turns, permits = 8, 12, 3

var background = context.Background()

// clients have the servers in this order, and in the other one.
func clients(t *testing.T) (*redlockd.Client, *redlockd.Client) {
	urls := strings.Split(os.Getenv("REDLOCKD_URL"), ",")
	var made []*redlockd.Client
	for _, order := range [][]string{urls, {urls[1], urls[0]}} {
		client, err := redlockd.New(redlockd.Config{URLs: order,
			Logf: func(text string, with ...any) {
				if strings.Contains(text, "/batch") {
					t.Errorf(text, with...)
				}
			}})
		must(t, err)
		t.Cleanup(client.Close)
		made = append(made, client)
	}
	return made[0], made[1]
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func acquire(t *testing.T, c *redlockd.Client, o redlockd.Options) *redlockd.Lock {
	t.Helper()
	lock, err := c.Acquire(background, o)
	must(t, err)
	t.Cleanup(func() { _ = lock.Release(background) })
	return lock
}

func of(names ...string) redlockd.Options {
	return redlockd.Options{Resources: names, Wait: redlockd.NoWait}
}

func isHeld(t *testing.T, c *redlockd.Client, o redlockd.Options) *redlockd.HeldError {
	t.Helper()
	_, err := c.Acquire(background, o)
	var held *redlockd.HeldError
	if !errors.As(err, &held) {
		t.Fatal(err)
	}
	return held
}

func TestSeveralAtOnceAndAnyCharacters(t *testing.T) {
	t.Parallel()
	client, other := clients(t)
	lock := acquire(t, client, of("b", "a/b ü?#%"))
	for _, o := range []redlockd.Options{of("a/b ü?#%"), of("b"), of("c", "b")} {
		isHeld(t, other, o)
	}
	holder, err := other.Get(background, "a/b ü?#%")
	must(t, err)
	if holder.FencingToken != lock.FencingToken() {
		t.Fatal(holder)
	}
	must(t, lock.Release(background))
	acquire(t, client, of("a/b ü?#%"))
}

func TestTheyTakeTurns(t *testing.T) {
	t.Parallel()
	one, two := clients(t)
	var group sync.WaitGroup
	var inside, number, done int64 // not guarded: the lock is to do that
	for n := 0; n < workers; n++ {
		client := one
		if n%2 > 0 {
			client = two
		}
		group.Add(1)
		go func() {
			defer group.Done()
			for turn := 0; turn < turns; turn++ {
				o := of("turns")
				o.TTL, o.Wait = 4*time.Second, 0
				err := client.Do(background, o, func(_ context.Context, l *redlockd.Lock) error {
					if inside != 0 || l.FencingToken() <= number {
						t.Error("two at once, or a number that does not rise")
					}
					inside, number = 1, l.FencingToken()
					time.Sleep(time.Millisecond)
					inside, done = 0, done+1
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
	if done != workers*turns {
		t.Fatal(done)
	}
}

func TestReadersAndADowngrade(t *testing.T) {
	t.Parallel()
	client, other := clients(t)
	o := of("read")
	o.TTL = time.Second
	writer := acquire(t, client, o)
	reader := of("read")
	reader.Shared = true
	isHeld(t, other, reader)
	token, number := writer.Token(), writer.FencingToken()
	must(t, writer.Downgrade(background))
	if writer.Token() == token || writer.FencingToken() != number || !writer.Shared() {
		t.Fatal("the token must be another, the number the same")
	}
	second := acquire(t, other, reader)
	waiting := of("read")
	waiting.Wait = 2500 * time.Millisecond
	isHeld(t, client, waiting) // beyond the TTL of both
	must(t, writer.Check())
	must(t, writer.Release(background))
	must(t, second.Release(background))
	waiting.Wait = 5 * time.Second // readers that just left may keep it for a moment
	if next := acquire(t, client, waiting); next.FencingToken() <= second.FencingToken() {
		t.Fatal("the number does not rise")
	}
}

// All kinds of locks, of few names, so that many of what is asked clashes; no
// batch is refused.
func TestManyAtOnceGoTogether(t *testing.T) {
	t.Parallel()
	client, _ := clients(t)
	var group sync.WaitGroup
	for n := 0; n < 40; n++ {
		o := of(fmt.Sprint("many:", n%20))
		o.TTL, o.Wait = 4*time.Second, 0
		switch n % 4 {
		case 1:
			o.Resources = []string{fmt.Sprint("many/readers:", n%2)}
			o.Shared = true
		case 2:
			o.Resources, o.Limit = []string{"many/pool"}, permits
		case 3:
			o.Resources = append(o.Resources, "many:0", "many ü")
		}
		group.Add(1)
		go func() {
			defer group.Done()
			for turn := 0; turn < turns; turn++ {
				if err := client.Do(background, o, func(ctx context.Context,
					l *redlockd.Lock) error {
					return l.Check()
				}); err != nil {
					t.Error(o, err)
				}
			}
		}()
	}
	group.Wait()
}

// The long form is make bench-clients BUSY=2.
func TestManyLocksAreHeldWhileAllCoresAreBusy(t *testing.T) {
	client, _ := clients(t)
	var group sync.WaitGroup
	var mutex sync.Mutex
	var locks []*redlockd.Lock
	for n := 0; n < 300; n++ {
		o := of(fmt.Sprint("held:", n))
		o.TTL, o.Wait = 4*time.Second, 0
		group.Add(1)
		go func() {
			defer group.Done()
			lock, err := client.Acquire(background, o)
			if err != nil {
				t.Error(err)
				return
			}
			mutex.Lock()
			defer mutex.Unlock()
			locks = append(locks, lock)
		}()
	}
	group.Wait()
	ctx, cancel := context.WithTimeout(background, 9*time.Second)
	defer cancel()
	for n := 0; n < runtime.NumCPU(); n++ {
		go func() {
			for ctx.Err() == nil {
			}
		}()
	}
	<-ctx.Done()
	for _, lock := range locks {
		group.Add(1)
		go func(lock *redlockd.Lock) {
			defer group.Done()
			if err := lock.Release(background); err != nil {
				t.Error(err)
			}
		}(lock)
	}
	group.Wait()
}

func TestListedAndReleasedByForce(t *testing.T) {
	t.Parallel()
	client, other := clients(t)
	o := of("force:b", "force:a")
	o.Owner = "me"
	lock := acquire(t, client, o)
	found, err := other.Locks(background, "force:")
	must(t, err)
	if len(found) != 2 || found[0].Owner != "me" ||
		found[0].FencingToken != lock.FencingToken() {
		t.Fatal(found)
	}
	for _, step := range []struct {
		number int64
		is     bool
	}{{lock.FencingToken() - 1, false}, {lock.FencingToken(), true},
		{lock.FencingToken(), false}} {
		for _, one := range found {
			is, err := client.ForceRelease(background, one.ID, step.number)
			must(t, err)
			if is != step.is {
				t.Fatal(one, step)
			}
		}
	}
	acquire(t, client, of("force:a"))
	if err := lock.Release(background); !errors.Is(err, redlockd.ErrLost) {
		t.Fatal(err)
	}
}

func TestAWaitThatIsCancelledLeavesTheQueue(t *testing.T) {
	t.Parallel()
	client, _ := clients(t)
	lock := acquire(t, client, of("left"))
	ctx, cancel := context.WithTimeout(background, 300*time.Millisecond)
	defer cancel()
	o := of("left")
	o.Wait = 0
	if _, err := client.Acquire(ctx, o); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	must(t, lock.Release(background))
	acquire(t, client, of("left")) // else the server would grant it to the other
}

func TestWatchShowsEachHolder(t *testing.T) {
	t.Parallel()
	client, other := clients(t)
	ctx, cancel := context.WithTimeout(background, 60*time.Second)
	defer cancel()
	seen := make(chan int64)
	go func() {
		defer close(seen)
		_ = client.Watch(ctx, "watched/leader", func(h *redlockd.Holder) error {
			number := int64(0)
			if h != nil {
				number = h.FencingToken
			}
			select {
			case seen <- number:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	for turn := 0; turn < 3; turn++ {
		if number := <-seen; number != 0 {
			t.Fatal("not free: ", number)
		}
		lock := acquire(t, other, of("watched/leader")) // through another server
		if number := <-seen; number != lock.FencingToken() {
			t.Fatal(number)
		}
		must(t, lock.Release(background))
	}
	cancel()
	for range seen {
	}
}

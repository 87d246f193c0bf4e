// A lock of redlockd with net/http. Its clock stops while the machine sleeps.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

type Lock struct {
	URLs           []string
	TTL, Wait      time.Duration
	key            string // the same for each repeat
	until, replica atomic.Int64
}

// Left is the time left for work; a tenth of the TTL is for ending it. Check it right
// before each step that cannot be undone.
func (l *Lock) Left() time.Duration {
	return time.Duration(l.until.Load()) - l.TTL/10 - time.Since(start)
}

// Hold runs work(fencing number) in a context that a loss cancels.
func (l *Lock) Hold(ctx context.Context, resource string,
	work func(context.Context, int64) error) error {
	grant, err := l.acquire(ctx, resource)
	if err != nil {
		return err
	}
	path, body := "/locks/"+grant.text("id"), fields{"token": grant["token"]}
	held, cancel := context.WithCancel(ctx)
	defer l.ask(context.Background(), 2*time.Second, "DELETE", path, body)
	defer cancel()
	go l.renew(held, cancel, path+"/extend", grant)
	return work(held, int64(grant["fencing_token"].(float64)))
}

func (l *Lock) acquire(ctx context.Context, resource string) (fields, error) {
	random, deadline := make([]byte, 16), time.Now().Add(l.Wait)
	rand.Read(random)
	l.key = fmt.Sprintf("%x", random)
	for {
		waitMs := math.Max(0, math.Min(10000, float64(time.Until(deadline).Milliseconds())))
		limit := time.Duration(waitMs+2000) * time.Millisecond
		grant := l.ask(ctx, limit, "POST", "/locks", fields{
			"resource": resource, "ttl_ms": l.TTL.Milliseconds(), "wait_ms": waitMs})
		if grant["token"] != nil {
			return grant, nil
		}
		code := grant.text("code")
		if code != "lock_held" && code != noAnswer || time.Now().After(deadline) || ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %v", resource, grant)
		} else if code == noAnswer {
			pause := 200*time.Millisecond + time.Duration(random[0])*3*time.Millisecond
			time.Sleep(pause + grant.ms("retry_after_ms"))
		}
	}
}

func (l *Lock) renew(ctx context.Context, cancel func(), path string, answer fields) {
	end := time.AfterFunc(l.Left(), cancel)
	body := fields{"token": answer["token"], "ttl_ms": l.TTL.Milliseconds()}
	for ctx.Err() == nil {
		pause := l.TTL / 20
		if answer["token"] != nil {
			pause = answer.ms("renew_after_ms")
		}
		time.Sleep(pause)
		answer = l.ask(ctx, l.Left()/time.Duration(len(l.URLs)), "PUT", path, body)
		if code := answer.text("code"); code == "lock_not_found" || code == "not_owner" {
			l.until.Store(0)
		}
		end.Reset(l.Left()) // cancels at once if nothing is left
	}
}

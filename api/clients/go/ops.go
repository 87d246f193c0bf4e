// SPDX-License-Identifier: MIT

package redlockd

import (
	"net/url"
	"strconv"
	"time"
)

const (
	pageSize = 1000
	// an answer to a watch that tells nothing new should take its time
	shortestWatch = time.Second
)

// Holder is who held a lock when that was asked. Unknown values are zero, as
// for locks of other libraries, and of readers.
type Holder struct {
	ID           string
	Resources    []string
	Slots        []int // of a permit, whose pool is the resource
	Owner        string
	FencingToken int64
	Remaining    time.Duration
	Waiters      int // clients that wait for it at the server that was asked
	Readers      int // how many hold it; 0: it is exclusive
	// Version is another one when the lock has changed hands.
	Version string
}

func newHolder(h *held) *Holder {
	resources := h.Resources
	if len(resources) == 0 {
		resources = []string{h.Resource}
	}
	return &Holder{ID: h.ID, Resources: resources, Slots: h.Slots, Owner: h.Owner,
		FencingToken: h.FencingToken, Remaining: milliseconds(h.RemainingMs),
		Waiters: h.Waiters, Readers: h.Readers, Version: h.Version}
}

// holderOf returns nil for a lock that is free.
func holderOf(h *held) *Holder {
	if !h.Held {
		return nil
	}
	return newHolder(h)
}

// asking asks each replica once, and one of them again, until one answers with
// something else than a failure of its own: what was asked for, or a problem.
// That answer is the result.
type asking struct {
	parties
	method, path string
	isTold       func(*fields) bool // whether it is what was asked for

	failures, denials int
	answer            *answer
}

func (t *asking) next(a *answer, now instant) step {
	if a != nil {
		if s := t.take(a, now); s.isDone || s.pause > 0 {
			return s
		}
	}
	return send(&request{method: t.method, path: t.path, timeout: t.timeout})
}

func (t *asking) take(a *answer, now instant) step {
	name := t.method + " " + t.path
	if !a.isDenial() && (a.isFinal() || a.status == 200 && t.isTold(&a.body)) {
		t.answer = a
		return done(nil)
	}
	t.failures++
	t.replicas.avoid(a.url, now)
	if !a.isDenial() {
		t.denials = 0
	} else if t.denials++; t.denials >= len(t.replicas.urls) {
		return done(refusal(name, a))
	}
	if t.failures > len(t.replicas.urls) {
		return done(unavailable(name, shown(a.url)+": "+a.String(), a))
	}
	if a.isDenial() {
		return step{}
	}
	return sleep(backoff(0, nil))
}

func isLock(b *fields) bool    { return b.Version != "" }
func isList(b *fields) bool    { return b.Locks != nil }
func isRelease(b *fields) bool { return b.Released }

func pathOf(lock string) string { return "/locks/" + url.PathEscape(lock) }

func pathOfList(prefix, cursor string) string {
	wanted := url.Values{"page_size": {strconv.Itoa(pageSize)}}
	if prefix != "" {
		wanted.Set("prefix", prefix)
	}
	if cursor != "" {
		wanted.Set("cursor", cursor)
	}
	return "/locks?" + wanted.Encode()
}

// watching ends its talk with each change: holder has the new holder, nil if the
// lock is free. It is then asked for the next one. A server that fails is no
// change: another one is asked, for as long as it takes.
type watching struct {
	parties
	path string

	version           string // empty: nobody has looked yet
	isPlain           bool   // the next request does not wait
	failures, denials int
	holder            *Holder
}

func (t *watching) next(a *answer, now instant) step {
	if a != nil {
		if s := t.take(a, now); s.isDone || s.pause > 0 {
			return s
		}
	}
	query, wait := t.howToWait()
	return send(&request{method: "GET", path: t.path + query, timeout: t.timeout,
		wait: wait})
}

// howToWait returns the query, and how long the server waits.
func (t *watching) howToWait() (string, time.Duration) {
	if t.version == "" || t.isPlain {
		return "", 0
	}
	return "?after=" + url.QueryEscape(t.version) + "&wait_ms=" +
		strconv.FormatInt(longestWait.Milliseconds(), 10), longestWait
}

func (t *watching) take(a *answer, now instant) step {
	if a.isDenial() {
		t.denials++
		t.replicas.avoid(a.url, now)
		if t.denials >= len(t.replicas.urls) {
			return done(refusal("GET "+t.path, a))
		}
		return step{}
	}
	t.denials = 0
	if a.isFinal() {
		return done(refusal("GET "+t.path, a))
	}
	if a.status != 200 || !isLock(&a.body) {
		t.failures++
		// a server that does not wait, as it stops, may still tell
		t.isPlain = true
		t.replicas.avoid(a.url, now)
		t.logf("GET %s: trying again (%s: %s)", t.path, shown(a.url), a)
		return sleep(t.replicas.delay(t.failures, a))
	}
	t.failures, t.isPlain = 0, false
	if a.body.Version != t.version {
		t.version, t.holder = a.body.Version, holderOf(&a.body.held)
		return done(nil)
	}
	// 0 or less: no pause; only a server that does not wait answers sooner
	return sleep(shortestWatch - now.sub(a.sent))
}

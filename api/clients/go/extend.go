package redlockd

import "time"

// extending asks until the lock is extended, or is no longer ours.
type extending struct {
	parties
	hold *hold
	// not a renewal, but asked for by the holder: servers may refuse it
	isDowngrade bool

	url                string
	sent               instant
	failures, refusals int
	wantsShared        bool
	isAtItsEnd         bool // it cannot be extended, and ends with its validity
}

func newDowngrade(p parties, h *hold) *extending {
	h.wantShared(true)
	return &extending{parties: p, hold: h, isDowngrade: true}
}

func (t *extending) next(a *answer, now instant) step {
	if a != nil {
		if s := t.take(a, now); s.isDone || s.pause > 0 {
			return s
		}
	}
	left := t.hold.remaining()
	if left <= 0 {
		t.hold.lose("the lock's validity ended")
		return done(t.hold.err())
	}
	g := t.hold.now()
	body := map[string]any{"ttl_ms": g.ttl.Milliseconds()}
	// asked with either token, a server finds the lock in either mode
	t.wantsShared = t.hold.isSharedWanted()
	if t.wantsShared {
		body["mode"] = "shared"
	}
	t.url, t.sent = t.replicas.choose(now), now
	// two other replicas can be asked in the rest
	return send(&request{"PUT", t.url + "/locks/" + g.id + "/extend",
		tokenOf(g), body, shorter(t.timeout, left/3), 0})
}

func (t *extending) take(a *answer, now instant) step {
	if g := readGrant(a, t.sent); g != nil {
		t.hold.extended(g)
		return done(nil)
	}
	if t.wantsShared != t.hold.isSharedWanted() {
		return step{} // the token may have changed meanwhile
	}
	if a.isEnd() {
		t.hold.lose("the lock ended (" + a.String() + ")")
		return done(t.hold.err())
	}
	if a.code() == "max_hold_reached" {
		t.isAtItsEnd = true
		t.logf("%s: no longer extended (%s)", t.hold.name, a)
		if t.isDowngrade {
			return done(refusal(t.hold.name, a))
		}
		return done(nil)
	}
	if t.isDowngrade && a.isFinal() {
		t.refusals++
		if t.refusals == t.failures+1 && t.refusals >= len(t.replicas.urls) {
			t.hold.wantShared(false) // no server has begun it
			return done(refusal(t.hold.name, a))
		}
	}
	t.failures++
	t.replicas.avoid(t.url, now)
	t.logf("%s: not extended yet (%s: %s)", t.hold.name, shown(t.url), a)
	return sleep(longer(time.Millisecond,
		shorter(backoff(t.failures, a), t.hold.remaining()/4)))
}

// renewing extends the lock repeatedly, until it cannot be extended any more or
// is no longer ours.
type renewing struct {
	parties
	hold    *hold
	current *extending // nil: it is not yet time
	isDue   bool
}

func (t *renewing) next(a *answer, now instant) step {
	if t.current == nil {
		if !t.isDue {
			t.isDue = true
			return sleep(t.hold.renewIn())
		}
		t.current = &extending{parties: t.parties, hold: t.hold}
	}
	s := t.current.next(a, now)
	if !s.isDone || s.err != nil || t.current.isAtItsEnd {
		return s
	}
	t.current = nil
	return sleep(t.hold.renewIn())
}

// releasing ends with an error if the lock had ended, or if no server answers:
// then the lock expires, and others wait for that long.
type releasing struct {
	parties
	hold *hold

	url       string
	failures  int
	mayBeDone bool // by a request without an answer that tells
}

func (t *releasing) next(a *answer, now instant) step {
	if a != nil {
		if s := t.take(a, now); s.isDone || s.pause > 0 {
			return s
		}
	}
	g := t.hold.now()
	t.url = t.replicas.choose(now)
	return send(&request{"DELETE", t.url + "/locks/" + g.id, tokenOf(g), nil,
		t.timeout, 0})
}

func (t *releasing) take(a *answer, now instant) step {
	if a.status == 200 {
		return done(nil)
	}
	if a.isEnd() {
		if t.mayBeDone { // that may have been our own release
			return done(nil)
		}
		return done(&LostError{Name: t.hold.name,
			Reason: "the lock had ended (" + a.String() + ")"})
	}
	if !a.isDenial() && a.status != 429 {
		t.mayBeDone = true
	}
	t.failures++
	t.replicas.avoid(t.url, now)
	left := t.hold.validity()
	if t.failures > len(t.replicas.urls) || left <= 0 {
		return done(unavailable(t.hold.name, "not released; it is free in "+
			left.Round(time.Millisecond).String()+" ("+shown(t.url)+": "+
			a.String()+")", a))
	}
	var told *answer
	if a.status == 429 {
		told = a
	}
	return sleep(shorter(backoff(t.failures, told), left))
}

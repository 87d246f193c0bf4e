// SPDX-License-Identifier: MIT

package redlockd

import "time"

// urgent is an extend with less time left: it waits for no other request.
const urgent = time.Second

// extending asks until the lock is extended, or is no longer ours.
type extending struct {
	parties
	hold *hold
	// not a renewal, but asked for by the holder: servers may refuse it
	isDowngrade bool

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
	members := appendNumber(nil, "ttl_ms", g.ttl.Milliseconds())
	// asked with either token, a server finds the lock in either mode
	t.wantsShared = t.hold.isSharedWanted()
	if t.wantsShared {
		members = appendText(members, "mode", "shared")
	}
	// others can be asked in the rest
	return send(&request{kind: extend, isUrgent: left < urgent, method: "PUT",
		path: "/locks/" + g.id + "/extend", id: g.id, token: g.token,
		members: members, timeout: shorter(t.timeout, left/4),
		resources: t.hold.resources, claims: g.claims()})
}

func (t *extending) take(a *answer, now instant) step {
	if g := readGrant(a); g != nil {
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
	if t.isDowngrade && a.isFinal() && !a.isRepeated {
		t.refusals++
		if t.refusals == t.failures+1 && t.refusals >= len(t.replicas.urls) {
			t.hold.wantShared(false) // no server has begun it
			return done(refusal(t.hold.name, a))
		}
	}
	t.failures++
	t.replicas.avoid(a.url, now)
	t.logf("%s: not extended yet (%s: %s)", t.hold.name, shown(a.url), a)
	return sleep(longer(time.Millisecond,
		shorter(t.replicas.delay(t.failures, a), t.hold.remaining()/4)))
}

// releasing ends with an error if the lock had ended, or if no server answers:
// then the lock expires, and others wait for that long.
type releasing struct {
	parties
	hold *hold

	asked     *request
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
	t.asked = &request{kind: release, method: "DELETE", path: "/locks/" + g.id,
		id: g.id, token: g.token, timeout: t.timeout,
		resources: t.hold.resources, claims: g.claims()}
	return send(t.asked)
}

func (t *releasing) take(a *answer, now instant) step {
	if a.status == 200 {
		return done(nil)
	}
	if a.isEnd() {
		if t.mayBeDone || a.isRepeated { // that may have been our own release
			return done(nil)
		}
		return done(&LostError{Name: t.hold.name,
			Reason: "the lock had ended (" + a.String() + ")"})
	}
	t.mayBeDone = t.mayBeDone || a.isRepeated ||
		!a.isDenial() && a.status != 429 && a.code() != unsent
	t.failures++
	t.replicas.avoid(a.url, now)
	left := t.hold.validity()
	if t.failures > len(t.replicas.urls) || left <= 0 {
		return done(unavailable(t.hold.name, "not released; it is free in "+
			left.Round(time.Millisecond).String()+" ("+shown(a.url)+": "+
			a.String()+")", a))
	}
	if a.status != 429 {
		a = nil
	}
	return sleep(shorter(t.replicas.delay(t.failures, a), left))
}

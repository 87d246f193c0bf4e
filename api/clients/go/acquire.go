// SPDX-License-Identifier: MIT

package redlockd

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"time"
)

const (
	// proxies may cut requests after 60 s, some after 15 s
	longestWait = 10 * time.Second
	forever     = instant(math.MaxInt64)
	// of a lock that is acquired only to be released
	shortestTTL = 100 * time.Millisecond
)

// NoWait as Options.Wait: do not wait.
const NoWait time.Duration = -1

// Options say what to lock, and how.
type Options struct {
	// Resources are locked together: all or none.
	Resources []string
	// TTL is when the lock of a dead holder expires; 0: the server's default.
	TTL time.Duration
	// Wait is how long to wait for the lock, and for a server that works; 0:
	// until the context ends; NoWait: do not wait.
	Wait time.Duration
	// Owner is shown to clients that find the lock held; "": what the servers
	// know you as.
	Owner string
	// Shared: as a reader, beside other readers.
	Shared bool
	// Limit: up to so many hold the resource at once; 0: one.
	Limit int
	// Permits, with a Limit: how many of these to take; 0: one.
	Permits int
}

func (o *Options) name() string { return strings.Join(o.Resources, ", ") }

func (o *Options) check() error {
	switch {
	case len(o.Resources) == 0:
		return errors.New("name at least one resource")
	case o.Limit != 0 && len(o.Resources) > 1:
		return errors.New("a limit is of one resource")
	case o.Limit == 0 && o.Permits != 0:
		return errors.New("permits need a limit")
	case o.Limit != 0 && o.Shared:
		return errors.New("a permit has one holder: it cannot be shared")
	case o.TTL < 0 || o.TTL > 0 && o.TTL < time.Millisecond:
		return errors.New("the TTL must be at least a millisecond")
	case o.Wait < 0 && o.Wait != NoWait:
		return errors.New("the wait is negative")
	}
	return nil
}

// members are those of the body of an acquire.
func (o *Options) members() []byte {
	var m []byte
	if len(o.Resources) == 1 {
		m = appendText(m, "resource", o.Resources[0])
	} else {
		m = appendTexts(m, "resources", o.Resources)
	}
	if o.TTL > 0 {
		m = appendNumber(m, "ttl_ms", o.TTL.Milliseconds())
	}
	if o.Owner != "" {
		m = appendText(m, "owner", o.Owner)
	}
	if o.Limit != 0 {
		m = appendNumber(m, "limit", int64(o.Limit))
		m = appendNumber(m, "permits", int64(o.permits()))
	}
	if o.Shared {
		m = appendText(m, "mode", "shared")
	}
	return m
}

// claims are those of an acquire.
func (o *Options) claims() claim {
	switch {
	case o.Shared:
		return reading
	case o.Limit != 0:
		return permits
	}
	return exclusive
}

// acquire is the request; the server waits for so long, if for any time.
func (o *Options) acquire(key string, timeout, wait time.Duration) *request {
	return &request{kind: acquire, method: "POST", path: "/locks", key: key,
		members: o.members(), timeout: timeout, wait: wait,
		resources: o.Resources, claims: o.claims()}
}

func (o *Options) permits() int {
	if o.Permits == 0 {
		return 1
	}
	return o.Permits
}

func newKey() (string, error) {
	var random [16]byte
	_, err := rand.Read(random[:])
	return hex.EncodeToString(random[:]), err
}

// acquiring asks until the lock is ours or the time is up. All requests have
// one key: if an answer with a grant was lost, the next request gets the same
// lock.
type acquiring struct {
	parties
	options  Options
	key      string
	deadline instant

	failures, denials int
	granted           *grant   // the result
	asked             *request // whose answer is due
	isLost            bool     // an answer did not come, or does not tell
	isPatient         bool     // a try has found the lock held
}

// mayHold: nobody knows whether a lock was granted.
func (t *acquiring) mayHold() bool {
	return t.isLost || t.asked != nil && !t.asked.isUnsent
}

func newAcquiring(p parties, o Options, key string, now instant) *acquiring {
	t := &acquiring{parties: p, options: o, key: key, deadline: forever}
	if o.Wait != 0 {
		t.deadline = now.add(longer(0, o.Wait))
	}
	return t
}

func (t *acquiring) left(now instant) time.Duration {
	return longer(0, t.deadline.sub(now))
}

func (t *acquiring) next(a *answer, now instant) step {
	if a != nil {
		t.asked = nil
		if s := t.take(a, now); s.isDone || s.pause > 0 {
			return s
		}
	}
	t.asked = t.options.acquire(t.key, t.timeout,
		shorter(t.left(now), longestWait))
	t.asked.isPatient = t.isPatient
	return send(t.asked)
}

// take returns the end, a pause, or an empty step: ask again at once.
func (t *acquiring) take(a *answer, now instant) step {
	if g := readGrant(a); g != nil && g.workUntil > now {
		t.granted = g
		return done(nil)
	}
	t.isLost = t.isLost || !a.grantsNothing()
	if a.isHeld() {
		return t.takeHeld(a, now)
	}
	if a.isDenial() {
		t.denials++
		t.replicas.avoid(a.url, now)
		if t.denials >= len(t.replicas.urls) {
			return done(refusal(t.options.name(), a))
		}
		return step{}
	}
	t.denials = 0
	if a.isFinal() {
		return done(refusal(t.options.name(), a))
	}
	return t.takeFailure(a, now)
}

func (t *acquiring) takeHeld(a *answer, now instant) step {
	t.denials = 0
	if t.left(now) == 0 {
		return done(t.heldError(a))
	}
	if a.isTry {
		return t.waitFromNowOn()
	}
	if a.body.WaitedMs > 0 {
		return step{}
	}
	delay := a.retryAfter()
	if delay <= 0 {
		delay = backoff(0, nil)
	}
	return sleep(shorter(delay, t.left(now)))
}

// waitFromNowOn begins a request of its own, with a key of its own: a server
// undoes that if its client leaves, but not a repeat. If a grant of the old key
// may be on its way, the old key stays.
func (t *acquiring) waitFromNowOn() step {
	t.isPatient = true
	if key, err := newKey(); err == nil && !t.isLost {
		t.key = key
	}
	return step{}
}

func (t *acquiring) takeFailure(a *answer, now instant) step {
	t.failures++
	t.replicas.avoid(a.url, now)
	reason := shown(a.url) + ": " + a.String()
	// each replica once, and one of them again
	if t.left(now) == 0 && t.failures > len(t.replicas.urls) {
		return done(unavailable(t.options.name(),
			"no server grants it ("+reason+")", a))
	}
	t.logf("%s: not acquired yet, trying again (%s)", t.options.name(), reason)
	return sleep(shorter(t.replicas.delay(t.failures, a), t.left(now)))
}

func (t *acquiring) heldError(a *answer) error {
	by := a.body.HeldBy
	err := &HeldError{Resources: t.options.Resources, Limit: t.options.Limit}
	if t.options.Limit == 0 && by != nil {
		err.Owner, err.FencingToken = by.Owner, by.FencingToken
		err.Remaining, err.Readers = milliseconds(by.RemainingMs), by.Readers
	}
	return err
}

// retracting ends an acquire that may have been granted and whose answer nobody
// reads any more: it gets the lock, by the same key, and releases it. If another
// holds it, nothing was granted.
type retracting struct {
	parties
	options Options
	key     string
	clock   func() instant

	failures int
	release  *releasing // once it has the lock
	wasLost  bool       // its release was told that the lock had ended
}

func (t *retracting) next(a *answer, now instant) step {
	if t.release != nil {
		s := t.release.next(a, now)
		var lost *LostError
		if t.wasLost || !s.isDone || !errors.As(s.err, &lost) {
			return s
		}
		// the request that was given up may have come later than this one, and
		// have taken its place
		t.wasLost, t.release, a = true, nil, nil
	}
	if a != nil {
		if g := readGrant(a); g != nil {
			hold := newHold(&t.options, g, t.clock)
			t.release = &releasing{parties: t.parties, hold: hold}
			return t.release.next(nil, now)
		}
		if a.isFinal() && !a.isDenial() {
			return done(nil)
		}
		t.replicas.avoid(a.url, now)
		if t.failures++; t.failures > len(t.replicas.urls) {
			return done(unavailable(t.options.name(),
				"not released: it may be held until its TTL ends", a))
		}
		return sleep(backoff(t.failures, nil))
	}
	options := t.options
	options.TTL = shortestTTL
	return send(options.acquire(t.key, t.timeout, 0))
}

// SPDX-License-Identifier: MIT

package redlockd

import (
	"sync"
	"time"
)

// hold is a lock that was granted: until when, and whether it ended before.
type hold struct {
	name      string
	resources []string
	clock     func() instant

	mutex sync.Mutex
	grant grant
	loss  *LostError
	// from now on it cannot be lost: it is being released
	isReleased bool
	// a downgrade has begun: from now on, each extend asks for it
	wantsShared bool
}

func newHold(o *Options, g *grant, clock func() instant) *hold {
	return &hold{name: o.name(), resources: o.Resources,
		clock: clock, grant: *g, wantsShared: g.isShared}
}

// claims are those of an extend or a release with its token.
func (g *grant) claims() claim {
	if g.isShared {
		return reading
	}
	return exclusive
}

// now returns the grant as it is at present.
func (h *hold) now() grant {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.grant
}

// extended takes a new validity. While the lock becomes a shared one, a renewal
// may be under way: its answer may come last, with the token from before.
func (h *hold) extended(g *grant) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	next := *g
	if h.grant.isShared && !g.isShared {
		next.token, next.isShared = h.grant.token, true
	}
	if next.until < h.grant.until {
		next.until = h.grant.until
	}
	if next.workUntil < h.grant.workUntil {
		next.workUntil = h.grant.workUntil
	}
	h.grant = next
}

// remaining is how long the work may go on; 0 if the lock was lost or released.
func (h *hold) remaining() time.Duration {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.loss != nil || h.isReleased {
		return 0
	}
	return longer(0, h.grant.workUntil.sub(h.clock()))
}

// validity is how long nobody else can have the lock, unless it was lost.
func (h *hold) validity() time.Duration {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return longer(0, h.grant.until.sub(h.clock()))
}

// lose ends the lock, unless that has happened or it was released. Returns
// whether it is lost now or was before.
func (h *hold) lose(reason string) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.loss == nil && !h.isReleased {
		h.loss = &LostError{Name: h.name, Reason: reason}
	}
	return h.loss != nil
}

// release says that the lock cannot be lost any more.
func (h *hold) release() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.isReleased = true
}

// err is nil while the lock is held, as far as was noticed.
func (h *hold) err() error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.loss != nil {
		return h.loss
	}
	if h.isReleased {
		return ErrReleased
	}
	return nil
}

func (h *hold) isSharedWanted() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.wantsShared
}

func (h *hold) wantShared(wants bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.wantsShared = wants
}

func (h *hold) isLost() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.loss != nil
}

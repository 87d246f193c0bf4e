// SPDX-License-Identifier: MIT

package redlockd

import (
	"testing"
	"time"
)

// planned is a lock whose grant was asked for now.
func (g *game) planned(s *schedule, more map[string]any) *kept {
	k := &kept{hold: g.holding(more), place: -1}
	s.plan(k, g.at)
	return k
}

// taken returns how many were lost and are due.
func (g *game) taken(s *schedule) [2]int {
	lost, due := s.take(g.at)
	return [2]int{len(lost), len(due)}
}

func (g *game) passes(d time.Duration) { g.at = g.at.add(d) }

// renewed ends the renewal of a lock with a grant that was asked for now.
func (g *game) renewed(s *schedule, k *kept) {
	k.hold.extended(g.granted(nil))
	k.isRenewing = false
	s.plan(k, g.at)
}

func TestARenewalIsDueFromTheGrantNotFromItsAnswer(t *testing.T) {
	g := newGame(t, one)
	late := g.granted(map[string]any{"elapsed_ms": 7})
	g.passes(2 * time.Second)
	s := schedule{}
	k := &kept{hold: newHold(&order, late, g.clock), place: -1}
	s.plan(k, g.at)
	equal(t, k.at.sub(g.at), 1007*time.Millisecond)
	g.passes(1006 * time.Millisecond)
	equal(t, g.taken(&s), [2]int{0, 0})
	g.passes(time.Millisecond)
	equal(t, g.taken(&s), [2]int{0, 1})
	sent := g.granted(nil)
	g.passes(4 * time.Second) // at once, but not without a pause
	k.hold.extended(sent)
	k.isRenewing = false
	s.plan(k, g.at)
	equal(t, k.at.sub(g.at), time.Millisecond)
}

func TestRenewalsThatAreSoonDueGoWithThoseThatAre(t *testing.T) {
	g := newGame(t, one)
	s := schedule{}
	for n := 0; n < 4; n++ {
		g.planned(&s, nil)
		g.passes(200 * time.Millisecond)
	}
	g.passes(2199 * time.Millisecond)
	equal(t, g.taken(&s), [2]int{0, 0}) // nothing is due: nothing goes early
	g.passes(time.Millisecond)
	equal(t, g.taken(&s), [2]int{0, 2}) // a tenth of three seconds
	g.passes(400 * time.Millisecond)
	equal(t, g.taken(&s), [2]int{0, 2})
	equal(t, g.taken(&s), [2]int{0, 0})
}

func TestALossIsNoticedWhileARenewalIsUnderWay(t *testing.T) {
	g := newGame(t, one)
	s := schedule{}
	k := g.planned(&s, nil)
	g.passes(3 * time.Second)
	equal(t, g.taken(&s), [2]int{0, 1})
	g.passes(5899 * time.Millisecond)
	equal(t, g.taken(&s), [2]int{0, 0})
	g.passes(time.Millisecond)
	equal(t, g.taken(&s), [2]int{1, 0})
	equal(t, len(s), 0)
	s.remove(k) // it is not there
}

func TestARenewedLockIsNotLost(t *testing.T) {
	g := newGame(t, one)
	s := schedule{}
	k, other := g.planned(&s, nil), g.planned(&s, nil)
	for n := 0; n < 5; n++ {
		g.passes(3 * time.Second)
		equal(t, g.taken(&s), [2]int{0, 2})
		g.renewed(&s, k)
		g.renewed(&s, other)
	}
	s.remove(other)
	k.isAtItsEnd = true
	s.plan(k, g.at)
	g.passes(8899 * time.Millisecond)
	equal(t, g.taken(&s), [2]int{0, 0})
	g.passes(time.Millisecond)
	equal(t, g.taken(&s), [2]int{1, 0})
}

// SPDX-License-Identifier: MIT

package redlockd

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// kept is a lock in the schedule.
type kept struct {
	lock *Lock
	hold *hold
	at   instant // when to look at it again

	place      int  // in the schedule; negative: it is not there
	isRenewing bool // a renewal is under way
	isAtItsEnd bool // the servers extend it no more
}

// schedule says which locks to renew when, and which were lost, without I/O and
// without a clock. It is a heap by the moment.
type schedule []*kept

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(a, b int) bool { return s[a].at < s[b].at }
func (s schedule) Swap(a, b int) {
	s[a], s[b] = s[b], s[a]
	s[a].place, s[b].place = a, b
}

// Push is for heap only, as is Pop.
func (s *schedule) Push(one any) {
	k := one.(*kept)
	k.place = len(*s)
	*s = append(*s, k)
}

// Pop removes the last.
func (s *schedule) Pop() any {
	last := len(*s) - 1
	k := (*s)[last]
	k.place, (*s)[last] = -1, nil
	*s = (*s)[:last]
	return k
}

// plan puts a lock where it belongs, after a grant or an extend.
func (s *schedule) plan(k *kept, now instant) {
	g := k.hold.now()
	k.at = g.workUntil
	if !k.isRenewing && !k.isAtItsEnd && g.renewAt < k.at {
		k.at = g.renewAt
		if soonest := now.add(time.Millisecond); k.at < soonest {
			k.at = soonest
		}
	}
	if k.place < 0 {
		heap.Push(s, k)
	} else {
		heap.Fix(s, k.place)
	}
}

func (s *schedule) remove(k *kept) {
	if k.place >= 0 {
		heap.Remove(s, k.place)
	}
}

// take returns which locks were lost, and which are to be renewed now: with
// those that are due also those that soon will be, so that they go together.
func (s *schedule) take(now instant) (lost, due []*kept) {
	var later []*kept
	for len(*s) > 0 {
		k := (*s)[0]
		g := k.hold.now()
		isRenewal := !k.isRenewing && !k.isAtItsEnd && g.renewAt <= k.at
		isSoon := isRenewal && len(due) > 0 && k.at.add(-g.renewEarly) <= now
		if k.at > now && !isSoon {
			break
		}
		heap.Pop(s)
		switch {
		case k.hold.remaining() <= 0:
			lost = append(lost, k)
		case isRenewal:
			k.isRenewing = true
			due = append(due, k)
			later = append(later, k)
		default:
			later = append(later, k) // its validity has grown meanwhile
		}
	}
	for _, k := range later {
		s.plan(k, now)
	}
	return lost, due
}

// keeper renews the locks of a client and notices the loss of one, which must
// not wait for an answer or for a name server. All share one timer.
type keeper struct {
	mutex    sync.Mutex
	schedule schedule
	timer    *time.Timer
	isArmed  bool
	wakes    instant
}

// arm is called with the mutex. Timers stop while the machine sleeps.
func (k *keeper) arm(now instant, wake func()) {
	if len(k.schedule) == 0 {
		return
	}
	next := now.add(longestSleep)
	if at := k.schedule[0].at; at < next {
		next = at
	}
	if k.isArmed && k.wakes <= next {
		return
	}
	k.isArmed, k.wakes = true, next
	if k.timer == nil {
		k.timer = time.AfterFunc(next.sub(now), wake)
	} else {
		k.timer.Reset(next.sub(now))
	}
}

// keepUp is called by the timer.
func (c *Client) keepUp() {
	k := &c.keeper
	k.mutex.Lock()
	now := c.clock()
	k.isArmed = false
	lost, due := k.schedule.take(now)
	k.arm(now, c.keepUp)
	k.mutex.Unlock()
	for _, one := range lost {
		one.lock.lose("the lock's validity ended")
	}
	operations := make([]*operation, 0, len(due))
	for _, one := range due {
		if o := one.lock.renewal(now); o != nil {
			operations = append(operations, o)
		}
	}
	c.launch(c.submit(operations...))
}

// keepOn plans the next renewal.
func (l *Lock) keepOn() {
	k := &l.client.keeper
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if !l.isStopped {
		now := l.client.clock()
		k.schedule.plan(&l.kept, now)
		k.arm(now, l.client.keepUp)
	}
}

// renewal returns nil if there is to be none.
func (l *Lock) renewal(now instant) *operation {
	t := &extending{parties: l.client.parties, hold: l.hold}
	s := t.next(nil, now)
	if s.isDone {
		l.renewed(t)
		return nil
	}
	o := &operation{request: s.request, answered: func(a *answer) { l.take(t, a) }}
	k := &l.client.keeper
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if l.isStopped {
		return nil
	}
	l.pending = o
	return o
}

// take is what came of a renewal. If it has to be repeated, a goroutine does it.
func (l *Lock) take(t *extending, a *answer) {
	s := t.next(a, l.client.clock())
	if s.isDone {
		l.renewed(t)
		return
	}
	k := &l.client.keeper
	k.mutex.Lock()
	defer k.mutex.Unlock()
	l.pending = nil
	if l.isStopped {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.repeating.Add(1)
	go func() {
		defer l.repeating.Done()
		defer cancel()
		_ = l.client.runFrom(ctx, t, s) // an error is a loss, which hold knows
		l.renewed(t)
	}()
}

// renewed ends a renewal.
func (l *Lock) renewed(t *extending) {
	if l.hold.isLost() {
		l.lose("")
		return
	}
	k := &l.client.keeper
	k.mutex.Lock()
	l.pending, l.cancel = nil, nil
	l.kept.isRenewing, l.kept.isAtItsEnd = false, t.isAtItsEnd
	k.mutex.Unlock()
	l.keepOn()
}

// stop ends the renewals. One that is under way is not waited for.
func (l *Lock) stop() {
	k := &l.client.keeper
	k.mutex.Lock()
	l.isStopped = true
	k.schedule.remove(&l.kept)
	pending, cancel := l.pending, l.cancel
	l.pending, l.cancel = nil, nil
	k.mutex.Unlock()
	if pending != nil {
		l.client.cancel(pending)
	}
	if cancel != nil {
		cancel()
	}
}

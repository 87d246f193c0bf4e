// SPDX-License-Identifier: MIT

package redlockd

import "time"

// Which requests of a client go when, and which go together, without I/O and
// without a clock.
//
// At most two short requests are under way: these are the slots. What is asked
// for meanwhile is collected, and goes as soon as a slot is free:
//
//	add → queue → a slot is free → flight → landed → an answer for each → left
//	        ↑                        │
//	        └── refused as a batch ──┘
//
// One operation goes as its own request, several go as one batch. Nothing is
// delayed: who is alone goes at once. Beside another request, an acquire goes in a
// batch even if it is the only one: there it is tried once. As a request of its own
// it would keep its slot while it is tried again and again, because others want the
// same lock at the same time.

const (
	slots = 2
	// a server takes 100 operations and 64 KiB
	batchOperations = 100
	batchBytes      = 48 << 10
)

// operation is a request on its way through the line. answered is called once
// with what came of it, unless it was taken out before it was sent.
type operation struct {
	request  *request
	answered func(*answer)

	isTry       bool // it would wait, and was sent without
	mustBeAlone bool // a batch with it was refused
	isRepeated  bool // with another identity
	isAbandoned bool // nobody waits for its answer
	isDone      bool
}

// flight is a request that is under way: an operation, or a batch of them.
type flight struct {
	url        string // of the replica
	sent       instant
	operations []*operation
	isBatch    bool
	timeout    time.Duration // for an answer
	wait       time.Duration // how much later it may come: the server waits

	counts    counter // as what it is under way; an overdue one no longer is
	isOverdue bool
	isLanded  bool
}

type counter int

const (
	none counter = iota
	short
	beside // without a slot: the server waits, or there is no time to wait here
	counters
)

// line belongs to a client, whose mutex guards it.
type line struct {
	replicas *replicas
	queue    []*operation
	underWay [counters]int
}

// arrival is an answer to pass on.
type arrival struct {
	operation *operation
	answer    *answer
}

// add returns what to send at once. If only one was added, that is this one or
// nothing.
func (l *line) add(now instant, operations ...*operation) []*flight {
	var flights []*flight
	var urgent []*operation
	for _, o := range operations {
		r := o.request
		switch {
		case r.kind == apart:
			flights = append(flights, l.send(now, none, r.wait, o))
		case r.isUrgent:
			urgent = append(urgent, o)
		case r.wait > 0 && (r.isPatient || l.isIdle()):
			flights = append(flights, l.send(now, beside, r.wait, o))
		default:
			o.isTry = r.wait > 0
			l.queue = append(l.queue, o)
		}
	}
	for len(urgent) > 0 {
		var batch []*operation
		batch, urgent = takeBatch(urgent)
		flights = append(flights, l.send(now, beside, 0, batch...))
	}
	return l.fill(flights, now)
}

func (l *line) isIdle() bool {
	return l.underWay[short]+l.underWay[beside] == 0 && len(l.queue) == 0
}

// cancel takes an operation out. Returns false if it is too late for that: then
// it is answered.
func (l *line) cancel(o *operation) bool {
	for n, one := range l.queue {
		if one == o {
			l.queue = append(l.queue[:n], l.queue[n+1:]...)
			return true
		}
	}
	o.isAbandoned = true
	return false
}

// fill gives the free slots to what is queued.
func (l *line) fill(flights []*flight, now instant) []*flight {
	for l.underWay[short] < slots && len(l.queue) > 0 {
		isAlone := l.underWay[short]+l.underWay[beside] == 0
		var batch []*operation
		batch, l.queue = takeBatch(l.queue)
		f := l.send(now, short, 0, batch...)
		f.isBatch = f.isBatch || !isAlone && batch[0].isTriedOnce()
		flights = append(flights, f)
	}
	return flights
}

// isTriedOnce: in a batch, if it goes beside others.
func (o *operation) isTriedOnce() bool {
	return o.request.kind == acquire && !o.mustBeAlone &&
		o.request.size() <= batchBytes
}

func (l *line) send(now instant, counts counter, wait time.Duration,
	operations ...*operation) *flight {
	f := &flight{url: l.replicas.choose(now), sent: now, operations: operations,
		isBatch: len(operations) > 1, wait: wait, counts: counts}
	for _, o := range operations {
		f.timeout = longer(f.timeout, o.request.timeout)
	}
	if counts != none {
		l.underWay[counts]++
	}
	return f
}

// takeBatch takes the first of a queue and what can go with it, and returns the
// rest. What clashes with one of these stays, and is the first the next time.
func takeBatch(queue []*operation) (batch, rest []*operation) {
	first := queue[0]
	if len(queue) == 1 || first.mustBeAlone {
		return []*operation{first}, append(queue[:0], queue[1:]...)
	}
	batch = make([]*operation, 0, batchOperations)
	rest = queue[:0]
	all, size := claims{}, 0
	for n, o := range queue {
		size += o.request.size()
		if len(batch) == batchOperations || size > batchBytes && n > 0 {
			rest = append(rest, queue[n:]...)
			break
		}
		if o.mustBeAlone || !all.claim(o.request) {
			size -= o.request.size()
			rest = append(rest, o)
			continue
		}
		batch = append(batch, o)
	}
	for n := len(rest); n < len(queue); n++ {
		queue[n] = nil // for the garbage collector
	}
	return batch, rest
}

// claims are the resources of a batch, and what they are wanted for.
type claims struct {
	resources map[string]claim
	readers   map[string]bool // their tokens
}

type claim int

const (
	unclaimed claim = iota
	exclusive
	reading // beside other readers
	permits // of a pool, beside others that acquire some
)

// claim returns false, and changes nothing, if a server would refuse the batch
// with r in it: two operations of one lock.
func (c *claims) claim(r *request) bool {
	if c.resources == nil {
		c.resources = make(map[string]claim, batchOperations)
	}
	if r.claims == reading && r.token != "" && c.readers[r.token] {
		return false
	}
	for _, resource := range r.resources {
		if is := c.resources[resource]; is != unclaimed &&
			(is == exclusive || is != r.claims) {
			return false
		}
	}
	for _, resource := range r.resources {
		c.resources[resource] = r.claims
	}
	if r.claims == reading && r.token != "" {
		if c.readers == nil {
			c.readers = map[string]bool{}
		}
		c.readers[r.token] = true
	}
	return true
}

// landed returns the answers to a flight, which keeps its slot until left.
// isRepeatable: it was sent with an identity that has been replaced since.
func (l *line) landed(f *flight, came *answer, isRepeatable bool) []arrival {
	f.isLanded = true
	arrivals := make([]arrival, 0, len(f.operations))
	var again []*operation
	isTimely := false
	for n, o := range f.operations {
		if o.isDone {
			continue
		}
		a := f.answerOf(n, came)
		isTimely = isTimely || a.isTimely()
		switch {
		case !f.isBatch || o.isAbandoned:
		case came.refusesBatch() && !came.isRepeated: // else the first may be done
			o.mustBeAlone = true
			again = append(again, o)
			continue
		case a.status == 401 && isRepeatable && !o.isRepeated:
			o.isRepeated = true
			again = append(again, o)
			continue
		}
		arrivals = append(arrivals, o.arrive(a))
	}
	if isTimely {
		l.replicas.worked(f.url)
	}
	if len(again) > 0 {
		l.queue = append(again, l.queue...)
	}
	return arrivals
}

// left gives the slot of a flight that has landed to the next one.
func (l *line) left(f *flight, now instant) []*flight {
	l.leave(f)
	return l.fill(nil, now)
}

// answerOf returns that of an operation: of a batch without results, what came
// of the whole.
func (f *flight) answerOf(n int, came *answer) *answer {
	a := came
	if f.isBatch && came.status == 200 {
		if len(came.results) != len(f.operations) {
			a = unanswered("not one for each operation")
		} else {
			a = came.results[n]
			a.isRepeated = came.isRepeated
		}
		if a.status == 401 && came.isRepeated {
			a = unanswered("the repeat of a batch was denied")
		}
	} else if f.isBatch && came.isRepeated && came.refusesBatch() {
		// the first one may have been carried out
		a = unanswered("the repeat of a batch was refused")
	} else if f.isBatch {
		one := *came
		a = &one
	}
	a.url, a.sent, a.isOverdue = f.url, f.sent, f.isOverdue
	a.isTry = f.operations[n].isTry
	return a
}

// unanswered: of an operation whose batch tells nothing about it.
func unanswered(why string) *answer {
	return &answer{body: fields{Code: noAnswer, Detail: "no answer: " + why}}
}

func (o *operation) arrive(a *answer) arrival {
	o.isDone = true
	return arrival{o, a}
}

// leave: it no longer counts as under way.
func (l *line) leave(f *flight) {
	if f.counts != none {
		l.underWay[f.counts]--
	}
	f.counts = none
}

// look is due after nextLook: a flight that is overdue frees its slot, and
// operations whose own time is up are answered.
func (l *line) look(f *flight, now instant) (arrivals []arrival,
	flights []*flight) {
	if f.isLanded {
		return nil, nil
	}
	if !f.isOverdue && now >= f.overdueAt() {
		f.isOverdue = true
		l.replicas.avoid(f.url, now)
		l.leave(f)
	}
	for _, o := range f.operations {
		if f.isBatch && !o.isDone && now >= f.sent.add(o.request.timeout) {
			arrivals = append(arrivals, o.arrive(&answer{url: f.url,
				sent: f.sent, isOverdue: true, isTry: o.isTry,
				body: fields{Code: noAnswer, Detail: tooLate}}))
		}
	}
	return arrivals, l.fill(nil, now)
}

func (f *flight) overdueAt() instant { return f.sent.add(f.wait + overdueAfter) }

// nextLook is in how long to look at it again; 0: never.
func (f *flight) nextLook(now instant) time.Duration {
	next := forever
	if !f.isOverdue {
		next = f.overdueAt()
	}
	for _, o := range f.operations {
		if at := f.sent.add(o.request.timeout); f.isBatch && !o.isDone && at < next {
			next = at
		}
	}
	if next == forever || f.isLanded {
		return 0
	}
	return longer(time.Millisecond, next.sub(now))
}

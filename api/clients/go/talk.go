// SPDX-License-Identifier: MIT

package redlockd

import "time"

// What is asked of redlockd, and when, without I/O and without a clock.
//
// A talk is a state machine: acquiring, retracting, extending, renewing,
// releasing, asking, watching. Its caller does what each step says, and passes
// what came of it to the next:
//
//	next(nil) → send a request → next(its answer) → pause → next(nil) → done

// talk returns the next step. a is the answer to the request of the last step;
// nil if that was none.
type talk interface {
	next(a *answer, now instant) step
}

// step is one of three: a request to send, a pause, or the end.
type step struct {
	request *request
	pause   time.Duration
	isDone  bool
	err     error
}

// request is what to send, to whichever replica is to be asked then.
type request struct {
	kind    kind
	method  string
	path    string
	key     string        // of idempotency; "": none
	id      string        // of the lock, unless it is to be acquired
	token   string        // of the lock
	members []byte        // of the body, a JSON object, without its braces
	timeout time.Duration // for connection and answer together
	wait    time.Duration // how much later the answer may come: the server waits

	resources []string // which other operations it clashes with
	claims    claim
	// a try has found the lock held: it waits, whatever else is under way
	isPatient bool
	// an extend with little time left: it waits for no other request
	isUrgent bool

	// what became of it if its context ended first:
	isUnsent bool           // it was taken out of the queue
	later    <-chan *answer // it is under way with others, and answered then
}

// kind says what a request is within a batch.
type kind string

const (
	apart   kind = "" // in no batch, and beside what is under way
	acquire kind = "acquire"
	extend  kind = "extend"
	release kind = "release"
)

func send(r *request) step       { return step{request: r} }
func sleep(d time.Duration) step { return step{pause: d} }
func done(err error) step        { return step{isDone: true, err: err} }

// parties are the servers and how to talk to them: the same for each talk of a
// client.
type parties struct {
	replicas *replicas
	timeout  time.Duration
	logf     func(format string, arguments ...any)
}

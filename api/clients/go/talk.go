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

// request is what to send.
type request struct {
	method  string
	url     string
	headers map[string]string
	body    map[string]any // nil: none
	timeout time.Duration  // for connection and answer together
	wait    time.Duration  // how much later the answer may come: the server waits
}

func send(r *request) step              { return step{request: r} }
func sleep(d time.Duration) step        { return step{pause: d} }
func done(err error) step               { return step{isDone: true, err: err} }
func tokenOf(g grant) map[string]string { return map[string]string{"X-Lock-Token": g.token} }

// parties are the servers and how to talk to them: the same for each talk of a
// client.
type parties struct {
	replicas *replicas
	timeout  time.Duration
	logf     func(format string, arguments ...any)
}

// SPDX-License-Identifier: MIT

package redlockd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// run does what a talk says until that ends. If ctx ends before, it returns the
// error of ctx; but an answer that came is still taken.
func (c *Client) run(ctx context.Context, t talk) error {
	return c.runFrom(ctx, t, t.next(nil, c.clock()))
}

func (c *Client) runFrom(ctx context.Context, t talk, s step) error {
	for !s.isDone {
		if err := ctx.Err(); err != nil {
			if s.request != nil {
				s.request.isUnsent = true
			}
			return err
		}
		var a *answer
		if s.request == nil {
			pause(ctx, s.pause, c.clock)
		} else {
			a = c.send(ctx, s.request)
		}
		if err := ctx.Err(); err != nil && (a == nil || a.status == 0) {
			return err
		}
		s = t.next(a, c.clock())
	}
	return s.err
}

// send returns an answer with the status 0 if ctx ends first.
func (c *Client) send(ctx context.Context, r *request) *answer {
	ready := make(chan *answer, 1)
	o := &operation{request: r, answered: func(a *answer) { ready <- a }}
	for _, f := range c.submit(o) {
		c.launch(c.fly(ctx, f)) // o alone
	}
	select {
	case a := <-ready:
		return a
	default:
	}
	select {
	case a := <-ready:
		return a
	case <-ctx.Done():
	}
	if r.isUnsent = c.cancel(o); !r.isUnsent {
		r.later = ready
	}
	return failure(ctx.Err())
}

// submit returns what to send at once.
func (c *Client) submit(operations ...*operation) []*flight {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.line.add(c.clock(), operations...)
}

// cancel returns whether the operation will not be sent.
func (c *Client) cancel(o *operation) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.line.cancel(o)
}

// launch sends flights, and those that follow them, in the background.
func (c *Client) launch(flights []*flight) {
	for _, f := range flights {
		go func(f *flight) {
			for f != nil {
				next := c.fly(context.Background(), f)
				if f = nil; len(next) > 0 {
					f = next[0]
					c.launch(next[1:])
				}
			}
		}(f)
	}
}

// fly sends one, and returns which are to be sent next.
func (c *Client) fly(ctx context.Context, f *flight) []*flight {
	ctx, cancel := context.WithTimeout(ctx, f.timeout+f.wait)
	defer cancel()
	timer := c.watch(f)
	came, isRepeatable := c.exchange(ctx, f)
	timer.Stop()
	c.mutex.Lock()
	arrivals := c.line.landed(f, came, isRepeatable)
	c.mutex.Unlock()
	if f.isBatch && came.refusesBatch() && !came.isRepeated {
		c.logf("POST /batch: each operation goes alone (%s: %s)", shown(f.url), came)
	}
	deliver(arrivals)
	if f.isBatch {
		runtime.Gosched() // what they ask next goes along
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.line.left(f, c.clock())
}

// watch looks at a flight when that is due, until the timer is stopped.
func (c *Client) watch(f *flight) *time.Timer {
	var timer *time.Timer
	c.mutex.Lock()
	defer c.mutex.Unlock()
	timer = time.AfterFunc(f.nextLook(f.sent), func() {
		c.mutex.Lock()
		now := c.clock()
		arrivals, flights := c.line.look(f, now)
		if next := f.nextLook(now); next > 0 {
			timer.Reset(next)
		}
		c.mutex.Unlock()
		c.launch(flights)
		deliver(arrivals)
	})
	return timer
}

func deliver(arrivals []arrival) {
	for _, one := range arrivals {
		one.operation.answered(one.answer)
	}
}

// exchange also returns whether a server did not know us, but may now.
func (c *Client) exchange(ctx context.Context, f *flight) (*answer, bool) {
	r := f.operations[0].request
	to := message{method: r.method, url: f.url + r.path, key: r.key,
		token: r.token, body: f.body()}
	if f.isBatch {
		to = message{method: "POST", url: f.url + "/batch", body: to.body,
			isBatch: true}
	}
	a, refused := c.sendOnce(ctx, &to)
	if !a.has401() || !c.identity.refresh(refused) {
		return a, false
	}
	if a.status == 401 {
		again, _ := c.sendOnce(ctx, &to)
		again.isRepeated = again.isRepeated || a.isRepeated
		return again, false
	}
	return a, true
}

func (a *answer) has401() bool {
	for _, one := range a.results {
		if one.status == 401 {
			return true
		}
	}
	return a.status == 401
}

// probe finds out whether a replica is back that was avoided, before a lock
// depends on it.
func (c *Client) probe(url string) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	a, _ := c.sendOnce(ctx, &message{method: "GET", url: url + "/readyz"})
	c.replicas.probed(url, a.status > 0 && a.status < 500 && a.status != 429,
		c.clock())
}

// message is a request as it is sent.
type message struct {
	method, url, key, token string
	body                    []byte // nil: none
	isBatch                 bool
}

// sendOnce also returns the Authorization that was sent.
func (c *Client) sendOnce(ctx context.Context, m *message) (*answer, string) {
	var body io.Reader = http.NoBody
	if m.body != nil {
		body = bytes.NewReader(m.body)
	}
	ctx, connections := counting(ctx)
	asked, err := http.NewRequestWithContext(ctx, m.method, m.url, body)
	if err != nil {
		return failure(err), ""
	}
	// It is not sent, as it is empty. With it, net/http asks again at once if a kept
	// connection had ended.
	asked.Header["Idempotency-Key"] = nil
	if m.key != "" {
		asked.Header["Idempotency-Key"] = []string{m.key}
	}
	if m.token != "" {
		asked.Header["X-Lock-Token"] = []string{m.token}
	}
	if m.body != nil {
		asked.Header["Content-Type"] = []string{"application/json"}
	}
	authorization := c.identity.authorization()
	if authorization != "" {
		asked.Header["Authorization"] = []string{authorization}
	}
	response, err := c.pool.Do(asked)
	if err != nil {
		a := failure(err)
		// there was a connection: if it is the next that failed, this one had ended
		a.isRepeated = connections.Load() > 0
		if !a.isRepeated && a.code() == noAnswer { // by TLS, or by a proxy
			a.body.Code = unsent
		}
		return a, authorization
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	if err != nil {
		return failure(err), authorization
	}
	a := &answer{status: response.StatusCode}
	if m.isBatch && a.status == 200 {
		a.results = readResults(content)
	} else {
		a = readAnswer(a.status, content, response.Header.Get("Retry-After"))
	}
	a.kind = printable(response.Header.Get("Content-Type"))
	a.isRepeated = connections.Load() > 1
	return a, authorization
}

// counting counts the connections that a request goes over. With a second one, the
// first request may have been carried out.
func counting(ctx context.Context) (context.Context, *atomic.Int32) {
	var connections atomic.Int32
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connections.Add(1) },
	}), &connections
}

// failure has the reason without the URL, which may have a password.
func failure(err error) *answer {
	a := &answer{body: fields{Code: noAnswer}}
	var around *url.Error
	if errors.As(err, &around) {
		err = around.Err
	}
	var dialled *net.OpError
	if isUntrusted(err) {
		a.body.Code, a.body.Detail = untrusted, err.Error()
		return a
	}
	if errors.As(err, &dialled) && dialled.Op == "dial" {
		a.body.Code = unsent
	}
	a.body.Detail = "no answer: " + reasonOf(err)
	return a
}

// reasonOf says in words why there is no answer.
func reasonOf(err error) string {
	var name *net.DNSError
	var network net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was reset"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the answer was cut short"
	case errors.Is(err, io.EOF):
		return "the connection was closed"
	case errors.As(err, &name) && name.IsNotFound:
		return "the host has no address"
	case errors.As(err, &name):
		return "the host's address was not found out"
	case errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &network) && network.Timeout():
		return "it did not come in time"
	}
	return err.Error()
}

// SPDX-License-Identifier: MIT

package redlockd

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

const one, two, three = "http://one", "http://two", "http://three"

var order = Options{Resources: []string{"order:42"}}

// game plays talks without I/O: its clock moves only by pauses and by what the
// test says.
type game struct {
	t       *testing.T
	at      instant
	parties parties
	logged  []string
	url     string // which was asked last
	sent    instant
}

// asked is a request as it is sent.
type asked struct {
	*request
	url  string
	body map[string]any
}

func newGame(t *testing.T, urls ...string) *game {
	servers, err := newReplicas(urls)
	if err != nil {
		t.Fatal(err)
	}
	g := &game{t: t, at: 1000}
	g.parties = parties{servers, 5 * time.Second, func(f string, _ ...any) {
		g.logged = append(g.logged, f)
	}}
	return g
}

func (g *game) clock() instant { return g.at }

// asked returns the next request of a talk; pauses pass.
func (g *game) asked(t talk, a *answer) *asked {
	g.t.Helper()
	s := g.next(t, a)
	for !s.isDone && s.request == nil {
		if s.pause <= 0 {
			g.t.Fatal("neither a request nor a pause nor the end")
		}
		g.at = g.at.add(s.pause)
		s = t.next(nil, g.at)
	}
	if s.isDone {
		g.t.Fatalf("ended: %v", s.err)
	}
	f := (&line{replicas: g.parties.replicas}).send(g.at, none, s.request.wait,
		&operation{request: s.request})
	g.url, g.sent = f.url, f.sent
	r := &asked{request: s.request, url: f.url + s.request.path}
	_ = json.Unmarshal(f.body(), &r.body)
	return r
}

// next passes an answer to the last request.
func (g *game) next(t talk, a *answer) step {
	if a != nil {
		a.url, a.sent = g.url, g.sent
	}
	return t.next(a, g.at)
}

// ended expects the end of a talk.
func (g *game) ended(t talk, a *answer) error {
	g.t.Helper()
	s := g.next(t, a)
	if !s.isDone {
		g.t.Fatalf("not the end: %+v", s)
	}
	return s.err
}

// paused expects a pause.
func (g *game) paused(t talk, a *answer) time.Duration {
	g.t.Helper()
	s := g.next(t, a)
	if s.isDone || s.request != nil {
		g.t.Fatalf("no pause: %+v", s)
	}
	g.at = g.at.add(s.pause)
	return s.pause
}

func answered(status int, text string) *answer {
	return readAnswer(status, []byte(text), "")
}

func problem(status int, code string) *answer {
	return answered(status, `{"code":"`+code+`","detail":"`+code+`"}`)
}

func nobody() *answer { return &answer{body: fields{Code: noAnswer}} }

// granting is a grant of 10 s that is extended after 3 s, changed by more.
func granting(status int, more map[string]any) *answer {
	body := map[string]any{"id": "an~id", "token": "17.secret",
		"fencing_token": 17, "ttl_ms": 10000, "elapsed_ms": 0,
		"validity_ms": 9900, "renew_after_ms": 3000}
	for name, value := range more {
		body[name] = value
	}
	text, _ := json.Marshal(body)
	return readAnswer(status, text, "")
}

func (g *game) holding(more map[string]any) *hold {
	return newHold(&Options{Resources: []string{"a"}}, g.granted(more), g.clock)
}

// granted is a grant that was asked for now.
func (g *game) granted(more map[string]any) *grant {
	a := granting(201, more)
	a.sent = g.at
	return readGrant(a)
}

// equal compares what is shown: an error, a nil of any type, a number.
func equal(t *testing.T, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%v, not %v", got, want)
	}
}

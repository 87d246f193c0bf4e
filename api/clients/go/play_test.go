package redlockd

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// game plays talks without I/O: its clock moves only by pauses and by what the
// test says.
type game struct {
	t       *testing.T
	at      instant
	parties parties
	logged  []string
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
func (g *game) asked(t talk, a *answer) *request {
	g.t.Helper()
	s := t.next(a, g.at)
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
	return s.request
}

// ended expects the end of a talk.
func (g *game) ended(t talk, a *answer) error {
	g.t.Helper()
	s := t.next(a, g.at)
	if !s.isDone {
		g.t.Fatalf("not the end: %+v", s)
	}
	return s.err
}

// paused expects a pause.
func (g *game) paused(t talk, a *answer) time.Duration {
	g.t.Helper()
	s := t.next(a, g.at)
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
	return newHold("a", readGrant(granting(201, more), g.at), g.clock)
}

// equal compares what is shown: an error, a nil of any type, a number.
func equal(t *testing.T, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%v, not %v", got, want)
	}
}

// SPDX-License-Identifier: MIT

package redlockd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The transcripts of tests/protocol, played without I/O; docs/client-authors.md says
// what is in them.

// where they are; TRANSCRIPTS for a copy of this package
const folder = "../../../tests/protocol"

// talks that this package does not have: only its renewals choose a TTL
var foreign = map[string]bool{"extend": true}

type m map[string]any

// what a step may say beside its first word
var stepWords = map[string]string{
	"send": "of server headers body timeout_ms wait_ms", "again": "of timeout_ms",
	"answer":   "of after_ms body grant text retry_after overdue",
	"pause_ms": "of", "end": "*", "hold": "", "leave": "of",
	"cancel": "gives_back", "pass_ms": "", "choose": "probes", "failed": "",
	"worked": "", "probed": "works", "busy": "",
}

type transcript struct {
	Name, Why, Talk, Begins string
	Servers                 int
	Options                 m
	Steps                   []m
}

// running is a talk, and what it asks for now.
type running struct {
	talk       talk
	now        step
	asked      m       // the expected request
	flight     *flight // as it was sent
	isRepeated bool
}

// renewals are those of one lock: a keeper begins each when it is due.
type renewals struct {
	parties
	hold    *hold
	current *extending // nil: it is not yet time
	isDue   bool
}

func (t *renewals) next(a *answer, now instant) step {
	if t.current == nil && t.isDue {
		t.current = &extending{parties: t.parties, hold: t.hold}
	}
	if t.current != nil {
		s := t.current.next(a, now)
		if !s.isDone || s.err != nil || t.current.isAtItsEnd {
			return s
		}
	}
	t.current, t.isDue = nil, true
	return sleep(longer(0, t.hold.now().renewAt.sub(now)))
}

type player struct {
	*testing.T
	transcript
	grant    m
	at       instant
	parties  parties
	hold     *hold
	words    map[string]string // what $key stands for
	running  map[string]*running
	watch    *watching
	acquires []*acquiring
	due      []int
	isBusy   bool // other requests are under way
}

func TestTranscripts(t *testing.T) {
	where := os.Getenv("TRANSCRIPTS")
	if where == "" {
		where = folder
	}
	files, _ := filepath.Glob(where + "/*.json")
	if len(files) < 8 {
		t.Skip("only in the repository")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		var content struct {
			Grant, Request m
			Full           []m
			Transcripts    []transcript
		}
		decoder := json.NewDecoder(strings.NewReader(string(text)))
		decoder.DisallowUnknownFields()
		if err != nil || decoder.Decode(&content) != nil {
			t.Fatal(file, err)
		}
		for _, one := range content.Transcripts {
			one := one
			if foreign[one.Talk] {
				continue
			}
			if one.Begins == "full" {
				one.Steps = append(append([]m{}, content.Full...), one.Steps...)
			}
			for _, step := range one.Steps {
				complete(step, content.Request)
			}
			t.Run(filepath.Base(file)+": "+one.Name, func(t *testing.T) {
				if one.Talk == "together" {
					playTogether(t, one.Steps)
				} else {
					newPlayer(t, one, content.Grant).play()
				}
			})
		}
	}
}

// complete: asks is the request of the file, to this replica.
func complete(step, request m) {
	server, is := step["asks"]
	if !is {
		return
	}
	delete(step, "asks")
	step["server"] = server
	for name, value := range request {
		step[name] = value
	}
}

func newPlayer(t *testing.T, one transcript, grant m) *player {
	p := &player{T: t, transcript: one, grant: grant, at: 1000e9,
		words: map[string]string{}, running: map[string]*running{}}
	var urls []string
	for n := 0; n < one.Servers; n++ {
		urls = append(urls, fmt.Sprint("http://server-", n))
	}
	servers, err := newReplicas(urls)
	if err != nil {
		t.Fatal(err)
	}
	servers.due = func(url string) { p.due = append(p.due, p.server(url)) }
	p.parties = parties{servers, 5 * time.Second, func(string, ...any) {}}
	if grant != nil {
		a := p.read(m{"answer": 200.0, "grant": m{}})
		a.sent = p.at
		p.hold = p.holding(readGrant(a))
	}
	return p
}

func (p *player) clock() instant { return p.at }

func (p *player) holding(g *grant) *hold {
	return newHold(&Options{Resources: []string{"a"}}, g, p.clock)
}

func (p *player) pass(ms float64) {
	p.at = p.at.add(time.Duration(ms * float64(time.Millisecond)))
}

func (p *player) server(url string) int {
	for n, one := range p.parties.replicas.urls {
		if strings.HasPrefix(url, one) {
			return n
		}
	}
	return -1
}

func (p *player) url(step m, word string) string {
	return p.parties.replicas.urls[int(step[word].(float64))]
}

func (p *player) play() {
	for n, step := range p.Steps {
		text, _ := json.Marshal(step)
		p.Logf("step %d, %s", n, text) // shown with a failure
		p.take(step)
	}
	for name, one := range p.running {
		if one.talk != nil {
			p.Fatal(name, " did not end")
		}
	}
}

// wordOf is the one word by which a step is known.
func wordOf(t *testing.T, step m, words map[string]string) string {
	word := ""
	for name := range step {
		if _, is := words[name]; is && word == "" {
			word = name
		} else if is {
			t.Fatal("two words: ", word, name)
		}
	}
	for name := range step {
		if name != word && words[word] != "*" &&
			!strings.Contains(" "+words[word]+" ", " "+name+" ") {
			t.Fatal("unknown: ", name)
		}
	}
	return word
}

func (p *player) take(step m) {
	word := wordOf(p.T, step, stepWords)
	switch word {
	case "send":
		p.sent(step)
	case "again":
		p.again(step)
	case "answer":
		p.answered(step)
	case "pause_ms":
		p.paused(step)
	case "end":
		p.ended(step)
	case "hold":
		p.compare(p.state(p.hold), step["hold"].(map[string]any))
	case "leave":
		if r := p.of(step); p.skip(r).isDone {
			p.Fatal("ended: ", r.now.err)
		} else {
			r.talk = nil
		}
	case "cancel":
		p.cancelled(step)
	default:
		p.chosen(word, step)
	}
}

// ---- the talks

func (p *player) of(step m) *running {
	name, _ := step["of"].(string)
	if name == "" {
		name = p.Talk
	}
	if p.running[name] == nil || p.running[name].talk == nil {
		t := p.begin(strings.Fields(name)[0])
		p.running[name] = &running{talk: t, now: t.next(nil, p.at)}
	}
	return p.running[name]
}

func (p *player) begin(kind string) talk {
	resource, _ := p.Options["resource"].(string)
	switch kind {
	case "acquire":
		key, _ := newKey()
		t := newAcquiring(p.parties, p.options(), key, p.at)
		p.acquires = append(p.acquires, t)
		return t
	case "renew":
		return &renewals{parties: p.parties, hold: p.hold}
	case "downgrade":
		return newDowngrade(p.parties, p.hold)
	case "release":
		return &releasing{parties: p.parties, hold: p.hold}
	case "inspect":
		return &asking{parties: p.parties, method: "GET", path: pathOf(resource),
			isTold: isLock}
	case "watch":
		if p.watch == nil {
			p.watch = &watching{parties: p.parties, path: pathOf(resource)}
		}
		return p.watch
	case "force":
		return &asking{parties: p.parties, method: "DELETE", isTold: isRelease,
			path: pathOf(p.Options["id"].(string)) +
				fmt.Sprint("?force=", p.Options["fencing_token"])}
	}
	p.Fatal("no talk: ", kind)
	return nil
}

func (p *player) options() Options {
	var read struct {
		Resources      []string
		TTL            int64  `json:"ttl_ms"`
		Wait           *int64 `json:"wait_ms"`
		Owner          string
		Shared         bool
		Limit, Permits int
	}
	text, _ := json.Marshal(p.Options)
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&read); err != nil {
		p.Fatal(err)
	}
	o := Options{Resources: read.Resources, TTL: milliseconds(read.TTL),
		Owner: read.Owner, Shared: read.Shared, Limit: read.Limit,
		Permits: read.Permits}
	if read.Wait != nil && *read.Wait == 0 {
		o.Wait = NoWait
	} else if read.Wait != nil {
		o.Wait = milliseconds(*read.Wait)
	}
	return o
}

// skip passes pauses that are none.
func (p *player) skip(r *running) step {
	for !r.now.isDone && r.now.request == nil && r.now.pause <= time.Millisecond {
		p.at = p.at.add(r.now.pause)
		r.now = r.talk.next(nil, p.at)
	}
	return r.now
}

// ---- the steps

func (p *player) sent(step m) {
	r := p.of(step)
	asked := p.skip(r).request
	if asked == nil {
		p.Fatalf("no request: %+v", r.now)
	}
	r.asked = step
	wait, isTry := asked.wait, false
	if p.isBusy && !asked.isPatient && asked.kind == acquire && wait > 0 {
		wait, isTry = 0, true
	}
	r.flight = (&line{replicas: p.parties.replicas}).send(p.at, none, wait,
		&operation{request: asked, isTry: isTry})
	method, path, _ := strings.Cut(step["send"].(string), " ")
	p.equal("request", asked.method+" "+r.flight.url+asked.path,
		method+" "+p.url(step, "server")+path)
	var body any
	_ = json.Unmarshal(r.flight.body(), &body)
	if !reflect.DeepEqual(body, step["body"]) {
		p.Fatal("body: ", string(r.flight.body()))
	}
	sent := map[string]string{}
	if asked.key != "" {
		sent["Idempotency-Key"] = asked.key
	}
	if asked.token != "" {
		sent["X-Lock-Token"] = asked.token
	}
	p.near("timeout_ms", inMs(asked.timeout), orElse(step["timeout_ms"], 5000.0))
	p.near("wait_ms", inMs(wait), orElse(step["wait_ms"], 0.0))
	headers, _ := step["headers"].(map[string]any)
	p.equal("headers", len(sent), len(headers))
	for name, value := range headers {
		word := value.(string)
		if strings.HasPrefix(word, "$") {
			for other, text := range p.words {
				if (other == word) != (text == sent[name]) {
					p.Fatal(word, " is ", sent[name])
				}
			}
			p.words[word] = sent[name]
			continue
		}
		p.equal(name, sent[name], word)
	}
}

func (p *player) again(step m) {
	whole := m{"server": step["again"]}
	for name, value := range p.of(step).asked {
		if name != "server" {
			whole[name] = value
		}
	}
	if value := step["timeout_ms"]; value != nil {
		whole["timeout_ms"] = value
	}
	p.sent(whole)
}

func (p *player) answered(step m) {
	p.pass(orElse(step["after_ms"], 0.0).(float64))
	r := p.of(step)
	if r.now.request == nil {
		p.Fatal("nothing was asked")
	}
	if step["answer"] == "stale" { // net/http asks again
		r.isRepeated = true
		return
	}
	a := p.read(step)
	a.isRepeated, r.isRepeated = r.isRepeated, false
	a.url, a.sent = r.flight.url, r.flight.sent
	a.isTry = r.flight.operations[0].isTry
	if a.isOverdue {
		p.parties.replicas.avoid(a.url, p.at)
	}
	if a.isTimely() {
		p.parties.replicas.worked(a.url)
	}
	r.now = r.talk.next(a, p.at)
}

func (p *player) read(step m) *answer {
	if word, is := step["answer"].(string); is {
		code := map[string]string{"lost": noAnswer, "unsent": unsent,
			"untrusted": untrusted}[word]
		if code == "" {
			p.Fatal("no answer: ", word)
		}
		return &answer{body: fields{Code: code}}
	}
	body := step["body"]
	if grant, is := step["grant"].(map[string]any); is || step["grant"] != nil {
		whole := m{}
		for _, from := range []m{p.grant, grant} {
			for name, value := range from {
				whole[name] = value
			}
		}
		body = whole
	}
	text, is := step["text"].(string)
	if !is {
		encoded, _ := json.Marshal(body)
		text = string(encoded)
	}
	retry, _ := step["retry_after"].(string)
	a := readAnswer(int(step["answer"].(float64)), []byte(text), retry)
	a.isOverdue = step["overdue"] == true
	return a
}

func (p *player) paused(step m) {
	r := p.of(step)
	if r.now.isDone || r.now.request != nil {
		p.Fatalf("no pause: %+v", r.now)
	}
	p.near("pause", inMs(r.now.pause), step["pause_ms"])
	p.at = p.at.add(r.now.pause)
	r.now = r.talk.next(nil, p.at)
}

func (p *player) ended(step m) {
	r := p.of(step)
	if !p.skip(r).isDone {
		p.Fatalf("not the end: %+v", r.now)
	}
	end, told := p.told(r)
	p.equal(fmt.Sprint("the end (", r.now.err, ")"), end, step["end"])
	delete(step, "end")
	delete(step, "of")
	p.compare(told, step)
	r.talk = nil
}

// told is how it ended, and what else it tells.
func (p *player) told(r *running) (string, m) {
	err := r.now.err
	if t, is := r.talk.(*asking); is && err == nil && t.answer.status != 200 &&
		!(t.method == "DELETE" && t.answer.isEnd()) {
		err = refusal(t.path, t.answer)
	}
	var held *HeldError
	var none *UnavailableError
	var refused *RefusedError
	switch {
	case errors.As(err, &held):
		return "held", m{"owner": held.Owner, "fencing_token": held.FencingToken,
			"remaining_ms": inMs(held.Remaining), "readers": held.Readers}
	case errors.Is(err, ErrLost):
		return "lost", nil
	case errors.As(err, &none) && strings.HasPrefix(none.Reason, "not released"):
		return "not_released", nil
	case errors.Is(err, ErrRateLimited):
		return "rate_limited", m{"retry_after_ms": inMs(none.RetryAfter)}
	case none != nil:
		return "unavailable", nil
	case errors.Is(err, ErrUntrusted):
		return "untrusted", nil
	case errors.As(err, &refused):
		name := "refused"
		if errors.Is(err, ErrUnauthorized) {
			name = "unauthorized"
		} else if errors.Is(err, ErrForbidden) {
			name = "forbidden"
		}
		return name, m{"status": refused.Status, "code": refused.Code}
	case err != nil:
		p.Fatal(err)
	}
	switch t := r.talk.(type) {
	case *acquiring:
		return "granted", p.state(p.holding(t.granted))
	case *watching:
		return p.holder(t.holder)
	case *asking:
		if t.method == "GET" {
			return p.holder(holderOf(&t.answer.body.held))
		} else if t.answer.isEnd() {
			return "free", nil
		}
	}
	return "done", nil
}

func (p *player) holder(h *Holder) (string, m) {
	if h == nil {
		return "free", nil
	}
	return "holder", m{"owner": h.Owner, "fencing_token": h.FencingToken,
		"remaining_ms": inMs(h.Remaining), "version": h.Version,
		"readers": h.Readers}
}

func (p *player) state(h *hold) m {
	g := h.now()
	slots := g.slots
	if slots == nil {
		slots = []int{}
	}
	return m{"token": g.token, "fencing_token": g.fencingToken, "slots": slots,
		"shared": g.isShared, "work_ms": inMs(h.remaining()),
		"validity_ms": inMs(h.validity()), "renew_ms": inMs(g.renewAt.sub(p.at))}
}

func (p *player) cancelled(step m) {
	p.of(step).talk = nil
	t := p.acquires[0]
	p.equal("gives_back", t.mayHold(), step["gives_back"])
	if t.mayHold() {
		back := &retracting{parties: p.parties, options: t.options, key: t.key,
			clock: p.clock}
		p.running[p.Talk] = &running{talk: back, now: back.next(nil, p.at)}
	}
}

func (p *player) chosen(word string, step m) {
	r := p.parties.replicas
	switch word {
	case "pass_ms":
		p.pass(step[word].(float64))
	case "busy":
		p.isBusy = step[word] == true
	case "choose":
		p.due = []int{}
		p.equal("chosen", r.choose(p.at), p.url(step, word))
		p.equal("probes", p.due, orElse(step["probes"], []int{}))
	case "failed":
		r.avoid(p.url(step, word), p.at)
	case "worked":
		r.worked(p.url(step, word))
	case "probed":
		r.probed(p.url(step, word), step["works"] == true, p.at)
	default:
		p.Fatal("no step: ", step)
	}
}

// ---- what is compared

func inMs(d time.Duration) float64 {
	return float64(d) / float64(time.Millisecond)
}

func orElse(value, other any) any {
	if value == nil {
		return other
	}
	return value
}

func (p *player) equal(what string, got, want any) {
	p.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.Fatalf("%s: %v, not %v", what, got, want)
	}
}

// near: an exact time may be rounded; a range is of times drawn at random.
func (p *player) near(what string, got float64, want any) {
	p.Helper()
	span, is := want.([]any)
	if !is {
		span = []any{want, want}
	}
	if got < span[0].(float64)-1 || got > span[1].(float64)+1 {
		p.Fatalf("%s: %v, not %v", what, got, want)
	}
}

func (p *player) compare(told m, expected m) {
	p.Helper()
	for name, want := range expected {
		got, is := told[name]
		if number, isNumber := got.(float64); isNumber {
			p.near(name, number, want)
		} else if !is {
			p.Fatal("it does not tell ", name)
		} else {
			p.equal(name, got, want)
		}
	}
}

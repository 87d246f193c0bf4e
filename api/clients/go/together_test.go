// SPDX-License-Identifier: MIT

package redlockd

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// what a step may say beside its first word
var togetherWords = map[string]string{"ask": "operation wait_ms must_wait urgent more",
	"leaves": "wait_ms batch", "lands": "answer results told stale", "overdue": "",
	"gives_up": ""}

// together plays which calls go together.
type together struct {
	*testing.T
	line       line
	at         instant
	operations map[string]*operation
	asked      []*operation // in one moment
	underWay   []*flight
	departing  []*flight
}

func playTogether(t *testing.T, steps []m) {
	servers, err := newReplicas([]string{"http://server-0"})
	if err != nil {
		t.Fatal(err)
	}
	p := &together{T: t, line: line{replicas: servers}, at: 1000e9,
		operations: map[string]*operation{}}
	for n, step := range steps {
		text, _ := json.Marshal(step)
		p.Logf("step %d, %s", n, text) // shown with a failure
		p.take(step, wordOf(t, step, togetherWords))
	}
	if len(p.departing) > 0 {
		p.Fatal("it leaves, too: ", p.names(p.departing[0]))
	}
}

func (p *together) take(step m, word string) {
	if word != "leaves" && len(p.departing) > 0 {
		p.Fatal("it leaves, too: ", p.names(p.departing[0]))
	}
	switch word {
	case "ask":
		p.ask(step)
	case "leaves":
		p.leaves(step)
	case "lands":
		p.lands(step)
	case "overdue":
		f := p.flight(step[word].(string))
		p.at = f.overdueAt()
		_, flights := p.line.look(f, p.at)
		p.departing = append(p.departing, flights...)
	case "gives_up":
		p.line.cancel(p.operations[step[word].(string)])
	}
}

func (p *together) names(f *flight) []string {
	var names []string
	for _, one := range f.operations {
		for name, o := range p.operations {
			if o == one {
				names = append(names, name)
			}
		}
	}
	return names
}

func (p *together) flight(first string) *flight {
	for _, f := range p.underWay {
		if p.names(f)[0] == first {
			return f
		}
	}
	p.Fatal("not under way: ", first)
	return nil
}

func (p *together) ask(step m) {
	text, _ := json.Marshal(step["operation"])
	var of struct {
		Operation, Resource, Mode, ID, Token string
		Resources                            []string
		Limit                                int
		TTL                                  int64 `json:"ttl_ms"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&of); err != nil {
		p.Fatal(err)
	}
	var r *request
	if of.Operation == "acquire" {
		o := Options{Resources: of.Resources, Limit: of.Limit,
			Shared: of.Mode == "shared"}
		if of.Resource != "" {
			o.Resources = []string{of.Resource}
		}
		wait, _ := step["wait_ms"].(float64)
		r = o.acquire("key", 5e9, milliseconds(int64(wait)))
		r.isPatient = step["must_wait"] == true
	} else {
		r = &request{kind: kind(of.Operation), path: "/locks/" + of.ID, id: of.ID,
			token: of.Token, timeout: 5e9, resources: []string{of.ID},
			claims: exclusive}
	}
	r.isUrgent = step["urgent"] == true
	o := &operation{request: r}
	p.operations[step["ask"].(string)] = o
	p.asked = append(p.asked, o)
	if step["more"] != true {
		p.departing = append(p.departing, p.line.add(p.at, p.asked...)...)
		p.asked = nil
	}
}

func (p *together) leaves(step m) {
	if len(p.departing) == 0 {
		p.Fatal("nothing leaves")
	}
	f := p.departing[0]
	p.departing = p.departing[1:]
	p.underWay = append(p.underWay, f)
	if got := p.names(f); fmt.Sprint(got) != fmt.Sprint(step["leaves"]) {
		p.Fatal("it leaves: ", got)
	}
	if f.isBatch != (len(f.operations) > 1 || step["batch"] == true) {
		p.Fatal("a batch: ", f.isBatch)
	}
	if wait := orElse(step["wait_ms"], 0.0); inMs(f.wait) != wait {
		p.Fatal("it waits: ", f.wait)
	}
}

func (p *together) lands(step m) {
	f := p.flight(step["lands"].(string))
	for n, one := range p.underWay {
		if one == f {
			p.underWay = append(p.underWay[:n], p.underWay[n+1:]...)
			break
		}
	}
	came := &answer{body: fields{Code: noAnswer}}
	if status, is := step["answer"].(float64); is {
		came = &answer{status: int(status)}
	}
	results, _ := step["results"].([]any)
	for _, one := range results {
		came.results = append(came.results, &answer{status: int(one.(float64))})
	}
	came.isRepeated, _ = step["stale"].(bool)
	told := map[string]any{}
	for _, one := range p.line.landed(f, came, false) {
		for name, o := range p.operations {
			if o == one.operation && !o.isAbandoned {
				told[name] = one.answer.status
			}
		}
	}
	if fmt.Sprint(told) != fmt.Sprint(step["told"]) {
		p.Fatal("told: ", told)
	}
	p.departing = append(p.departing, p.line.left(f, p.at)...)
}

// SPDX-License-Identifier: MIT

package redlockd

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// airport plays events for a line: what is asked, landings, looks.
type airport struct {
	*game
	line line
	got  map[*operation]*answer
}

func newAirport(t *testing.T, urls ...string) *airport {
	a := &airport{game: newGame(t, urls...), got: map[*operation]*answer{}}
	a.line.replicas = a.parties.replicas
	return a
}

func trying(names ...string) *operation {
	o := Options{Resources: names}
	return &operation{request: o.acquire("key-of-"+names[0], 5*time.Second, 0)}
}

func waitingFor(name string) *operation {
	o := Options{Resources: []string{name}}
	return &operation{request: o.acquire("key-of-"+name, 5*time.Second, longestWait)}
}

// of is an acquire that claims a resource like this.
func of(name string, claims claim) *operation {
	o := Options{Resources: []string{name}}
	if claims == permits {
		o.Limit = 3
	}
	o.Shared = claims == reading
	return &operation{request: o.acquire("key", 5*time.Second, 0)}
}

func with(kind kind, name, token string, claims claim) *operation {
	return &operation{request: &request{kind: kind, id: name, token: token,
		path: "/locks/" + name, resources: []string{name}, claims: claims,
		timeout: 5 * time.Second}}
}

func (a *airport) add(operations ...*operation) []*flight {
	return a.line.add(a.at, operations...)
}

func (a *airport) take(arrivals []arrival) {
	for _, one := range arrivals {
		if a.got[one.operation] != nil {
			a.t.Fatal("answered twice")
		}
		a.got[one.operation] = one.answer
	}
}

func (a *airport) lands(f *flight, came *answer) []*flight {
	a.take(a.line.landed(f, came, false))
	return a.line.left(f, a.at)
}

// landsUnknown: the identity was replaced meanwhile.
func (a *airport) landsUnknown(f *flight, came *answer) []*flight {
	a.take(a.line.landed(f, came, true))
	return a.line.left(f, a.at)
}

func (a *airport) looks(f *flight) []*flight {
	arrivals, flights := a.line.look(f, a.at)
	a.take(arrivals)
	return flights
}

// busy takes both slots.
func (a *airport) busy() (*flight, *flight) {
	return a.add(trying("one"))[0],
		a.add(with(release, "two", "2.x", exclusive))[0]
}

// each is the answer to a batch with these statuses.
func each(statuses ...int) *answer {
	var results []string
	for _, status := range statuses {
		results = append(results, fmt.Sprintf(
			`{"status":%d,"problem":{"code":"of %d"}}`, status, status))
	}
	return &answer{status: 200, results: readResults([]byte(
		`{"results":[` + strings.Join(results, ",") + `]}`))}
}

func (a *airport) status(o *operation) int {
	if a.got[o] == nil {
		return -1
	}
	return a.got[o].status
}

func words(all ...any) string { return strings.TrimSpace(fmt.Sprintln(all...)) }

// names of what flies together.
func names(f *flight) string {
	var all []string
	for _, o := range f.operations {
		all = append(all, strings.Join(o.request.resources, "+"))
	}
	return strings.Join(all, " ")
}

func TestABatchWithoutAnAnswerIsThatOfEach(t *testing.T) {
	for _, came := range []*answer{nobody(), problem(401, "x"), problem(403, "x"),
		problem(421, "x"), problem(429, "x"), problem(503, "x"), problem(502, "x"),
		{status: 200}, each(201), {status: 200, results: readResults([]byte("<html>"))}} {
		a := newAirport(t, one)
		first, _ := a.busy()
		b, c := trying("b"), trying("c")
		a.add(b, c)
		batch := a.lands(first, nobody())[0]
		equal(t, len(a.lands(batch, came)), 0)
		want := came.status
		if want == 200 {
			want = 0 // it does not tell
		}
		equal(t, a.status(b), want)
		equal(t, a.status(c), want)
		if a.got[b] == a.got[c] {
			t.Fatal("they share an answer")
		}
		equal(t, len(a.line.queue), 0)
	}
}

func TestWhatIsRefusedAsABatchGoesAlone(t *testing.T) {
	for _, status := range []int{400, 404, 405, 413, 302} {
		a := newAirport(t, one)
		first, second := a.busy()
		b, c, d := trying("b"), trying("c"), trying("d")
		a.add(b, c, d)
		batch := a.lands(first, nobody())[0]
		a.add(trying("later"))
		a.cancelled(c, false)
		next := a.lands(batch, problem(status, "x"))
		equal(t, words(len(next), next[0].isBatch, names(next[0])), "1 false b")
		equal(t, a.status(c), status) // nobody waits for it
		after := a.lands(second, nobody())
		equal(t, words(len(after), after[0].isBatch, names(after[0])), "1 false d")
		a.lands(next[0], problem(409, "x"))
		a.lands(after[0], problem(400, "x"))
		equal(t, words(a.status(b), a.status(d)), "409 400")
	}
}

func TestAnotherIdentityIsTriedOnce(t *testing.T) {
	a := newAirport(t, one)
	first, _ := a.busy()
	b, c := trying("b"), trying("c")
	a.add(b, c)
	d := trying("d")
	a.add(d)
	batch := a.lands(first, nobody())[0]
	next := a.landsUnknown(batch, each(201, 401, 401))
	equal(t, words(len(next), names(next[0]), a.status(b)), "1 c d 201")
	next = a.landsUnknown(next[0], each(401, 401))
	equal(t, words(len(next), a.status(c), a.status(d)), "0 401 401")
}

func (a *airport) cancelled(o *operation, isTakenOut bool) {
	a.t.Helper()
	equal(a.t, a.line.cancel(o), isTakenOut)
}

func TestTwoOfOneLockDoNotGoTogether(t *testing.T) {
	for _, row := range []struct {
		first, second *operation
		is            bool
	}{
		{trying("a"), trying("b"), true},
		{trying("a"), trying("a"), false},
		{trying("a", "b"), trying("c", "b"), false},
		{of("a", reading), of("a", reading), true},
		{of("a", reading), trying("a"), false},
		{trying("a"), of("a", reading), false},
		{of("a", permits), of("a", permits), true},
		{of("a", permits), of("a", reading), false},
		{of("a", permits), with(release, "a", "1.x", exclusive), false},
		{trying("a"), with(release, "a", "1.x", exclusive), false},
		{with(extend, "a", "1.x", exclusive), with(release, "a", "1.x", exclusive), false},
		{with(extend, "a", "1~x", reading), with(release, "a", "2~x", reading), true},
		{with(extend, "a", "1~x", reading), with(release, "a", "1~x", reading), false},
		{with(release, "a", "1~x", reading), of("a", reading), true},
	} {
		a := newAirport(t, one)
		first, second := a.busy()
		a.add(trying("before"), row.first, row.second, trying("after"))
		batch := a.lands(first, nobody())[0]
		if row.is {
			equal(t, len(batch.operations), 4)
			continue
		}
		equal(t, batch.operations[1], row.first)
		equal(t, len(batch.operations), 3)
		next := a.lands(second, nobody())
		equal(t, next[0].operations[0], row.second) // the first of the next one
	}
}

func TestABatchHasAtMost100OperationsAnd48KiB(t *testing.T) {
	a := newAirport(t, one)
	first, second := a.busy()
	for n := 0; n < 250; n++ {
		a.add(trying(fmt.Sprint("name", n)))
	}
	batch := a.lands(first, nobody())[0]
	equal(t, len(batch.operations), 100)
	equal(t, names(batch)[:11], "name0 name1")
	equal(t, len(a.lands(second, nobody())[0].operations), 100)
	equal(t, len(a.line.queue), 50)

	a = newAirport(t, one)
	first, _ = a.busy()
	long := strings.Repeat("x", 5000)
	for n := 0; n < 20; n++ {
		a.add(with(release, fmt.Sprint(n, long), "1.x", exclusive))
	}
	batch = a.lands(first, nobody())[0]
	if size := len(batch.body()); size > 48<<10 || size < 40<<10 {
		t.Fatal(size)
	}
	equal(t, len(a.line.queue), 20-len(batch.operations))

	a = newAirport(t, one)
	first, _ = a.busy()
	a.add(trying(strings.Repeat("x", 50<<10)), trying("b"))
	equal(t, a.lands(first, nobody())[0].isBatch, false) // larger than any batch
}

func TestAnAcquireThatWaitsTakesNoSlot(t *testing.T) {
	a := newAirport(t, one)
	alone := a.add(waitingFor("a"))[0]
	equal(t, words(alone.wait, a.line.underWay), "10s [0 0 1]")
	tried := waitingFor("b") // something is under way: a try
	try := a.add(tried)[0]
	equal(t, words(try.wait, try.isBatch, a.line.underWay), "0s true [0 1 1]")
	a.lands(try, each(409))
	equal(t, a.got[tried].isTry, true)
	patient := waitingFor("b")
	patient.request.isPatient = true
	a.busy()
	waits := a.add(patient)[0]
	equal(t, words(waits.wait, a.line.underWay), "10s [0 2 2]")
	a.lands(waits, granting(201, nil))
	equal(t, a.got[patient].isTry, false)
	equal(t, a.line.underWay, [3]int{0, 2, 1})
	// what is no operation is sent at once, and counts for nothing
	equal(t, len(a.add(&operation{request: &request{method: "GET"}})), 1)
	equal(t, a.line.underWay, [3]int{0, 2, 1})
}

func TestAnOverdueRequestFreesItsSlot(t *testing.T) {
	a := newAirport(t, one, two)
	first, second := a.busy()
	b, c := trying("b"), trying("c")
	a.add(b, c)
	equal(t, first.nextLook(a.at), overdueAfter)
	a.passes(overdueAfter - 1)
	equal(t, len(a.looks(first)), 0)
	a.passes(1)
	next := a.looks(first)
	equal(t, words(len(next), names(next[0]), next[0].url), "1 b c "+two)
	equal(t, len(a.looks(first)), 0) // once
	equal(t, a.line.underWay[short], 2)
	a.lands(first, granting(201, nil))
	equal(t, a.line.underWay[short], 2)
	equal(t, a.got[first.operations[0]].isOverdue, true)
	equal(t, a.parties.replicas.choose(a.at), two) // it is still avoided
	a.looks(second)
	equal(t, a.line.underWay[short], 1)
	// who waits is overdue later
	waits := newAirport(t, one)
	f := waits.add(waitingFor("a"))[0]
	waits.passes(10 * time.Second)
	waits.looks(f)
	equal(t, waits.line.underWay[beside], 1)
	waits.passes(overdueAfter)
	waits.looks(f)
	equal(t, waits.line.underWay[beside], 0)
}

func TestAnOperationOfABatchHasItsOwnTimeout(t *testing.T) {
	a := newAirport(t, one)
	first, _ := a.busy()
	hurried, other := with(extend, "a", "1.x", exclusive), trying("b")
	hurried.request.timeout = 300 * time.Millisecond
	a.add(hurried, other)
	batch := a.lands(first, nobody())[0]
	equal(t, batch.timeout, 5*time.Second)
	equal(t, batch.nextLook(a.at), 300*time.Millisecond)
	a.passes(300 * time.Millisecond)
	a.looks(batch)
	equal(t, words(a.status(hurried), a.status(other)), "0 -1")
	equal(t, batch.nextLook(a.at), 200*time.Millisecond)
	a.passes(time.Second)
	a.looks(batch)
	a.lands(batch, each(200, 201))
	equal(t, words(a.status(hurried), a.status(other)), "0 201")
	equal(t, batch.nextLook(a.at), time.Duration(0))
	equal(t, len(a.looks(batch)), 0)
}

func TestABatchOfFailuresIsNoProofThatAServerWorks(t *testing.T) {
	a := newAirport(t, one, two)
	first, second := a.busy()
	a.add(trying("b"), trying("c"))
	batch := a.lands(first, nobody())[0]
	a.parties.replicas.avoid(one, a.at)
	a.lands(batch, each(503, 429))
	equal(t, a.parties.replicas.choose(a.at), two)
	a.lands(second, problem(409, "x"))
	equal(t, a.parties.replicas.choose(a.at), one)
}

func TestTheTextOfABatch(t *testing.T) {
	acquire := Options{Resources: []string{"a\"ü"}, TTL: time.Second, Owner: "me"}
	extending := with(extend, "b", "1.x", exclusive)
	extending.request.members = appendNumber(nil, "ttl_ms", 1000)
	f := &flight{isBatch: true, operations: []*operation{
		{request: acquire.acquire("k", 0, 0)}, extending,
		with(release, "c", "2.x", exclusive)}}
	var got, want any
	if err := json.Unmarshal(f.body(), &got); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal([]byte(`{"operations":[
		{"operation":"acquire","resource":"a\"ü","ttl_ms":1000,"owner":"me",
		 "idempotency_key":"k"},
		{"operation":"extend","id":"b","token":"1.x","ttl_ms":1000},
		{"operation":"release","id":"c","token":"2.x"}]}`), &want)
	equal(t, got, want)
}

func TestAnAcquireBesideOthersIsTriedOnce(t *testing.T) {
	long := strings.Repeat("x", 50<<10)
	for _, row := range []struct {
		is  bool
		one *operation
	}{
		{true, trying("a")},
		{true, of("a", permits)},
		{false, trying(long)}, // larger than any batch
		{false, with(extend, "a", "1.x", exclusive)},
		{false, with(release, "a", "1.x", exclusive)},
	} {
		a := newAirport(t, one)
		equal(t, a.add(trying("first"))[0].isBatch, false) // nothing is under way
		equal(t, a.add(row.one)[0].isBatch, row.is)
	}
}

func TestExtendsThatHaveNoTimeToWaitGoTogether(t *testing.T) {
	for _, row := range []struct {
		left time.Duration
		is   bool
	}{{1500 * time.Millisecond, false}, {900 * time.Millisecond, true}} {
		g := newGame(t, one)
		hold := g.holding(map[string]any{})
		g.at = g.at.add(hold.remaining() - row.left)
		talk := &extending{parties: g.parties, hold: hold}
		equal(t, g.asked(talk, nil).isUrgent, row.is)
	}
	a := newAirport(t, one)
	a.busy()
	var all []*operation
	for n := 0; n < 150; n++ {
		o := with(extend, fmt.Sprint(n), fmt.Sprint(n, ".x"), exclusive)
		o.request.isUrgent = n != 0
		all = append(all, o)
	}
	flights := a.add(all...)
	equal(t, len(flights), 2)
	equal(t, words(len(flights[0].operations), len(flights[1].operations)),
		"100 49")
	equal(t, words(a.line.underWay, len(a.line.queue)), "[0 2 2] 1")
	equal(t, len(a.lands(flights[0], nobody())), 0) // that freed no slot
}

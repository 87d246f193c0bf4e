// SPDX-License-Identifier: MIT

package user

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	redlockd "github.com/redlockd/redlockd/api/clients/go"
)

var background = context.Background()

// request is one that the fake got.
type request struct {
	method, path string
	header       http.Header
	body         map[string]any
	client       string // its address: the connection
	context      context.Context
	size         int      // of the body
	batch        *request // that it is of
	fake         *fake
	writer       http.ResponseWriter
}

// action answers a request, or fails.
type action func(*request)

// fake is a server that answers like redlockd, or fails as a script says: the
// actions of a method in turn, then its rest for ever.
type fake struct {
	*httptest.Server
	mutex    sync.Mutex
	fields   map[string]any // of every grant
	scripts  map[string][]action
	rest     map[string]action
	requests []*request
	left     int // clients that left before their answer
	number   int64
	wrong    []string // batches
}

type m = map[string]any

func newFake(t *testing.T, fields m) *fake { return newFakeTLS(t, fields, nil) }

func newFakeTLS(t *testing.T, fields m, config *tls.Config) *fake {
	f := &fake{fields: fields, scripts: map[string][]action{},
		rest: map[string]action{}, number: 1_795_221_641_865_000}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	f.Config.ErrorLog = log.New(io.Discard, "", 0)
	if config != nil {
		f.TLS = config
		f.StartTLS()
	} else {
		f.Start()
	}
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
		if len(f.wrong) > 0 {
			t.Error(f.wrong)
		}
	})
	return f
}

func (f *fake) on(method string, rest action, script ...action) *fake {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.scripts[method], f.rest[method] = script, rest
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	one := &request{method: r.Method, path: r.URL.RequestURI(),
		header: r.Header.Clone(), client: r.RemoteAddr, context: r.Context(),
		fake: f, writer: w, body: m{}}
	one.size = len(text)
	_ = json.Unmarshal(text, &one.body)
	if one.path == "/batch" {
		one.method = "BATCH"
	}
	f.play(one)
}

func (f *fake) play(one *request) {
	f.mutex.Lock()
	f.requests = append(f.requests, one)
	act := usual
	if script := f.scripts[one.method]; len(script) > 0 {
		act, f.scripts[one.method] = script[0], script[1:]
	} else if rest := f.rest[one.method]; rest != nil {
		act = rest
	}
	f.mutex.Unlock()
	act(one)
}

// part is the writer of an operation within a batch.
type part struct {
	*httptest.ResponseRecorder
	whole http.ResponseWriter
	isCut *atomic.Bool
}

// Hijack is that of the whole batch.
func (p part) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if p.isCut.Swap(true) {
		return nil, nil, io.EOF
	}
	return p.whole.(http.Hijacker).Hijack()
}

// operations are those of a batch, each as its single request.
func (r *request) operations() []*request {
	var found []*request
	for _, item := range r.body["operations"].([]any) {
		body := item.(m)
		take := func(name string) string {
			text, _ := body[name].(string)
			delete(body, name)
			return text
		}
		id := take("id")
		one := &request{header: r.header.Clone(), body: body, client: r.client,
			context: r.context, fake: r.fake, batch: r}
		switch operation := take("operation"); operation {
		case "acquire":
			one.method, one.path = "POST", "/locks"
		case "extend":
			one.method, one.path = "PUT", "/locks/"+id+"/extend"
		case "release":
			one.method, one.path = "DELETE", "/locks/"+id
		default:
			panic(operation)
		}
		one.header.Set("Idempotency-Key", take("idempotency_key"))
		one.header.Set("X-Lock-Token", take("token"))
		found = append(found, one)
	}
	return found
}

// each answers a batch when the last of its operations is decided.
func each(r *request) {
	if results := r.decide(); results != nil {
		r.answer(200, m{"results": results})
	}
}

// decide plays the operations of a batch. nil: the connection is cut.
func (r *request) decide() []m {
	r.checkBatch()
	operations := r.operations()
	var group sync.WaitGroup
	var isCut atomic.Bool
	parts := make([]part, len(operations))
	for n, one := range operations {
		parts[n] = part{httptest.NewRecorder(), r.writer, &isCut}
		one.writer = parts[n]
		group.Add(1)
		go func(one *request) {
			defer group.Done()
			r.fake.play(one)
		}(one)
	}
	group.Wait()
	if isCut.Load() {
		return nil
	}
	results := []m{}
	for n, one := range operations {
		status := parts[n].Code
		name := "problem"
		if status < 300 {
			name = map[string]string{"POST": "grant", "PUT": "grant",
				"DELETE": "release"}[one.method]
		}
		var body any
		_ = json.Unmarshal(parts[n].Body.Bytes(), &body)
		results = append(results, m{"status": status, name: body})
	}
	return results
}

// checkBatch: redlockd would not refuse it, and it is no larger than ours are.
func (r *request) checkBatch() {
	wrong := func(all ...any) {
		r.fake.mutex.Lock()
		defer r.fake.mutex.Unlock()
		r.fake.wrong = append(r.fake.wrong, fmt.Sprint(all...))
	}
	all := r.body["operations"].([]any)
	isOne := len(all) == 1 && all[0].(m)["operation"] == "acquire"
	if len(all) < 2 && !isOne || len(all) > 100 || r.size > 48<<10 ||
		r.header.Get("Idempotency-Key") != "" || r.header.Get("X-Lock-Token") != "" {
		wrong(len(all), " operations, ", r.size, " bytes")
	}
	isSeen := map[any]bool{}
	for _, item := range all {
		one := item.(m)
		for _, name := range []any{one["resource"], one["token"]} {
			if name != nil && isSeen[name] && one["mode"] != "shared" &&
				one["limit"] == nil || one["wait_ms"] != nil {
				wrong("refused: ", one)
			}
			isSeen[name] = true
		}
	}
}

func (f *fake) of(method string) []*request {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var found []*request
	for _, one := range f.requests {
		if method == "" || one.method == method {
			found = append(found, one)
		}
	}
	return found
}

func (f *fake) count(method string) int { return len(f.of(method)) }

func (r *request) answer(status int, body any) {
	text, _ := json.Marshal(body)
	r.answerText(status, string(text))
}

func (r *request) answerText(status int, text string) {
	r.writer.WriteHeader(status)
	fmt.Fprint(r.writer, text)
}

func (r *request) grant(more m) {
	r.fake.mutex.Lock()
	r.fake.number++
	number := r.fake.number
	r.fake.mutex.Unlock()
	body := m{"id": "an~id", "token": fmt.Sprintf("%d.0123456789abcdef", number),
		"fencing_token": number, "ttl_ms": 30000, "elapsed_ms": 0,
		"validity_ms": 29000, "renew_after_ms": 10000}
	for _, fields := range []m{r.fake.fields, more} {
		for name, value := range fields {
			body[name] = value
		}
	}
	if r.method == "PUT" && more["token"] == nil {
		body["token"] = r.header.Get("X-Lock-Token")
	}
	token := body["token"].(string)
	if r.body["mode"] == "shared" || strings.Contains(token, "~") {
		body["token"] = strings.ReplaceAll(token, ".", "~")
		body["mode"] = "shared"
	}
	status := 200
	if r.method == "POST" {
		status = 201
	}
	r.answer(status, body)
}

// ---- what a script can say ----------------------------------------------------

// usual grants, extends and releases whatever is asked for.
func usual(r *request) {
	if r.method == "BATCH" {
		each(r)
	} else if r.method == "DELETE" {
		r.answer(200, m{"released": true})
	} else {
		r.grant(nil)
	}
}

func grant(more m) action { return func(r *request) { r.grant(more) } }

func problem(status int, code string, more m) action {
	return func(r *request) {
		body := m{"status": status, "code": code, "detail": code}
		for name, value := range more {
			body[name] = value
		}
		r.answer(status, body)
	}
}

// page is what is not from redlockd, or not all of it.
func page(status int, text string) action {
	return func(r *request) { r.answerText(status, text) }
}

// knows is usual for this token, 401 for everybody else.
func knows(token string) action {
	return func(r *request) {
		if r.header.Get("Authorization") == "Bearer "+token {
			usual(r)
		} else {
			problem(401, "unauthorized", nil)(r)
		}
	}
}

// cut: the connection breaks instead of an answer.
func cut(r *request) {
	link, _, err := r.writer.(http.Hijacker).Hijack()
	if err == nil {
		link.Close()
	}
}

// cutAfter does it, but the answer is lost.
func cutAfter(act action) action {
	return func(r *request) {
		act(&request{method: r.method, header: r.header, body: r.body,
			fake: r.fake, writer: httptest.NewRecorder()})
		cut(r)
	}
}

func late(d time.Duration, act action) action {
	return func(r *request) {
		time.Sleep(d)
		act(r)
	}
}

// silent: no answer until the client leaves.
func silent(r *request) {
	<-r.context.Done()
	r.fake.mutex.Lock()
	r.fake.left++
	r.fake.mutex.Unlock()
}

// trickle is an answer that never ends.
func trickle(r *request) {
	r.writer.WriteHeader(200)
	for r.context.Err() == nil {
		fmt.Fprint(r.writer, " ")
		r.writer.(http.Flusher).Flush()
		time.Sleep(20 * time.Millisecond)
	}
}

func (f *fake) hasLeft() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.left > 0
}

// ---- what tests do -------------------------------------------------------------

var (
	noQuorum = problem(503, "no_quorum", m{"retry_after_ms": 10})
	gone     = problem(404, "lock_not_found", nil)
	free     = pageOf(m{"id": "a", "resource": "a", "held": false, "version": "free"})
	notOwner = problem(409, "not_owner", nil)
	heldBy   = problem(409, "lock_held", m{"retry_after_ms": 20, "held_by": m{
		"owner": "web-3", "remaining_ms": 1500, "fencing_token": 7}})
)

func TestMain(tests *testing.M) {
	for _, one := range os.Environ() {
		if name, _, _ := strings.Cut(one, "="); strings.HasPrefix(name, "REDLOCKD_") {
			os.Unsetenv(name)
		}
	}
	// it is not asked for this machine, where it would see the token
	os.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	os.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	os.Exit(tests.Run())
}

func newClient(t *testing.T, config redlockd.Config, fakes ...*fake) *redlockd.Client {
	t.Helper()
	for _, one := range fakes {
		config.URLs = append(config.URLs, one.URL)
	}
	client, err := redlockd.New(config)
	must(t, err)
	t.Cleanup(client.Close)
	return client
}

// wanted is a lock of "a" that is waited for.
func wanted() redlockd.Options {
	return redlockd.Options{Resources: []string{"a"}}
}

// acquire returns a lock that is released with the test, if not before.
func acquire(t *testing.T, c *redlockd.Client, o redlockd.Options) *redlockd.Lock {
	t.Helper()
	lock, err := c.Acquire(background, o)
	must(t, err)
	t.Cleanup(func() { _ = lock.Release(background) })
	return lock
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// equal compares what is shown.
func equal(t *testing.T, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%v, not %v", got, want)
	}
}

func isTrue(t *testing.T, is bool, what string) {
	t.Helper()
	if !is {
		t.Fatal("not so: " + what)
	}
}

func waitUntil(t *testing.T, is func() bool, what string) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); !is(); {
		if time.Now().After(until) {
			t.Fatal("in vain: " + what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func ends(t *testing.T, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the context did not end")
	}
}

// goroutines of the package, without those of connections.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	count := 0
	for _, one := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(one, "github.com/redlockd/redlockd/api/clients/go") &&
			!strings.Contains(one, "testing.tRunner") {
			count++
		}
	}
	return count
}

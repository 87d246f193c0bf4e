// SPDX-License-Identifier: MIT

package redlockd

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// codes of answers that no server gave
const (
	untrusted = "untrusted"
	noAnswer  = "no_answer"
	unsent    = "unsent" // no server has got the request

	tooLate = "no answer: it did not come in time"

	headerShown = 80 // characters
)

// answer is what came of a request. Status 0: no server answered, and code and
// detail say why.
type answer struct {
	status  int
	body    fields
	results []*answer // to a batch: one for each operation
	kind    string    // the Content-Type, as it can be shown

	url       string  // of the replica
	sent      instant // a moment before the request was sent
	isOverdue bool    // it took its time
	isTry     bool    // to an acquire that did not wait, though it wanted to
	// a kept connection had ended: the server may have got the request twice
	isRepeated bool
}

// fields are those of all answers; an unknown value is omitted.
type fields struct {
	Code         string `json:"code"`
	Detail       string `json:"detail"`
	RetryAfterMs int64  `json:"retry_after_ms"`
	WaitedMs     int64  `json:"waited_ms"`
	HeldBy       *held  `json:"held_by"`
	TTLMs        *int64 `json:"ttl_ms"`
	ElapsedMs    *int64 `json:"elapsed_ms"`
	ValidityMs   *int64 `json:"validity_ms"`
	RenewAfterMs *int64 `json:"renew_after_ms"`
	Token        string `json:"token"`
	Locks        []held `json:"locks"`
	NextCursor   string `json:"next_cursor"`
	Released     bool   `json:"released"`
	held
}

// held is what is told of a lock.
type held struct {
	ID           string   `json:"id"`
	Resource     string   `json:"resource"`
	Resources    []string `json:"resources"`
	Slots        []int    `json:"slots"`
	Held         bool     `json:"held"`
	Version      string   `json:"version"`
	Mode         string   `json:"mode"`
	Owner        string   `json:"owner"`
	FencingToken int64    `json:"fencing_token"`
	RemainingMs  int64    `json:"remaining_ms"`
	Waiters      int      `json:"waiters"`
	Readers      int      `json:"readers"`
}

func milliseconds(ms int64) time.Duration {
	return time.Duration(ms) * time.Millisecond
}

// readAnswer takes what is no JSON object, too: a proxy may have answered.
func readAnswer(status int, content []byte, retryAfter string) *answer {
	a := &answer{status: status}
	a.body.take(content)
	seconds, err := strconv.Atoi(retryAfter)
	if a.body.RetryAfterMs == 0 && err == nil && seconds > 0 {
		a.body.RetryAfterMs = int64(seconds) * 1000
	}
	return a
}

func (a *answer) code() string { return a.body.Code }

// isHeld: others hold the lock, and it can be waited for.
func (a *answer) isHeld() bool {
	return a.code() == "lock_held" || a.code() == "too_many_readers"
}

// grantsNothing: an acquire with this answer certainly was not granted.
func (a *answer) grantsNothing() bool {
	return !a.isRepeated && (a.isFinal() || a.isDenial() || a.status == 429 ||
		a.code() == unsent)
}

// isFinal: the request is wrong, here and at every other replica.
func (a *answer) isFinal() bool {
	return a.status >= 300 && a.status < 500 && a.status != 408 &&
		a.status != 429
}

// isDenial: by redlockd or by a gateway in front. Another replica may know
// other identities.
func (a *answer) isDenial() bool {
	return a.status == 401 || a.status == 403 || a.code() == untrusted
}

// refusesBatch: the server takes no batches, or not this one. Each operation has
// to go alone.
func (a *answer) refusesBatch() bool {
	return a.isFinal() && !a.isDenial() && a.status != 421
}

// isTimely: the server can be asked for other things, too.
func (a *answer) isTimely() bool {
	return a.status > 0 && a.status < 500 && a.status != 408 &&
		a.status != 429 && !a.isDenial() && !a.isOverdue
}

// isEnd: the lock is no longer ours.
func (a *answer) isEnd() bool {
	return a.code() == "lock_not_found" || a.code() == "not_owner"
}

func (a *answer) retryAfter() time.Duration {
	return milliseconds(a.body.RetryAfterMs)
}

// isForeign: a gateway has refused it, or whatever is there in place of redlockd,
// whose problems have a code.
func (a *answer) isForeign() bool { return a.status >= 300 && a.code() == "" }

func (a *answer) detail() string {
	if !a.isForeign() {
		return a.body.Detail
	}
	kind := a.kind
	if kind == "" {
		kind = "no Content-Type"
	}
	return "not from redlockd (" + kind + ")"
}

func (a *answer) String() string {
	if a.status == 0 {
		return a.body.Detail
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", a.status, a.detail()))
}

// printable is a header as it can be shown, whoever sent it.
func printable(text string) string {
	if len(text) > headerShown {
		text = text[:headerShown]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

func refusal(name string, a *answer) error {
	if a.code() == untrusted {
		return &UntrustedError{Name: name, Detail: a.body.Detail}
	}
	detail := a.detail()
	if a.isForeign() {
		detail = "from " + shown(a.url) + ", " + detail
	}
	return &RefusedError{Name: name, Status: a.status, Code: a.code(),
		Detail: detail}
}

func unavailable(name, reason string, a *answer) error {
	return &UnavailableError{Name: name, Reason: reason, Status: a.status,
		RetryAfter: a.retryAfter()}
}

// grant is a lock as it was granted or extended.
type grant struct {
	id           string
	token        string
	fencingToken int64
	ttl          time.Duration
	renewAt      instant       // on our clock, as the next
	renewEarly   time.Duration // it may be renewed so much sooner, with others
	workUntil    instant       // by then, work must have ended
	until        instant
	slots        []int // of a permit
	isShared     bool
}

// readGrant returns nil if the answer is no grant, cut off, or not from
// redlockd.
func readGrant(a *answer) *grant {
	if a == nil || a.status != 200 && a.status != 201 {
		return nil
	}
	b := &a.body
	if !isWord(b.ID) || !isWord(b.Token) || b.FencingToken == 0 ||
		b.TTLMs == nil || b.ElapsedMs == nil || b.ValidityMs == nil ||
		b.RenewAfterMs == nil {
		return nil
	}
	granted := a.sent.add(milliseconds(*b.ElapsedMs))
	until := granted.add(milliseconds(*b.ValidityMs))
	return &grant{
		id:           b.ID,
		token:        b.Token,
		fencingToken: b.FencingToken,
		ttl:          milliseconds(*b.TTLMs),
		renewAt:      granted.add(milliseconds(*b.RenewAfterMs)),
		renewEarly:   milliseconds(*b.RenewAfterMs) / 10,
		workUntil:    until.add(-milliseconds(*b.TTLMs) / 10), // time to end it
		until:        until,
		slots:        b.Slots,
		isShared:     b.Mode == "shared",
	}
}

// isWord: it can be sent as it is, within a path or a header.
func isWord(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool {
		return r < '!' || r > '~'
	}) < 0
}

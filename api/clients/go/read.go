// SPDX-License-Identifier: MIT

package redlockd

import (
	"bytes"
	"encoding/json"
)

// Answers as text. Those that come often are read without encoding/json, which
// would take as long as all the rest of a request. What they do not know is left
// to it.

// members calls take with each member of a JSON object, until that returns
// false. Returns whether it took all. What take does not look at may be wrong
// inside.
func members(text []byte, take func(name, value []byte) bool) bool {
	at, is := opened(text, '{')
	for is && at < len(text) {
		end := valueEnd(text, at)
		colon := skipSpace(text, end)
		if text[at] != '"' || colon >= len(text) || text[colon] != ':' {
			return false
		}
		name := text[at+1 : end-1]
		at = skipSpace(text, colon+1)
		if end = valueEnd(text, at); end == at || !take(name, text[at:end]) {
			return false
		}
		if at, is = after(text, end, '}'); at == len(text) {
			return is
		}
	}
	return false
}

// elements are those of an array, as members.
func elements(text []byte, take func(value []byte) bool) bool {
	at, is := opened(text, '[')
	for is && at < len(text) {
		end := valueEnd(text, at)
		if end == at || !take(text[at:end]) {
			return false
		}
		if at, is = after(text, end, ']'); at == len(text) {
			return is
		}
	}
	return false
}

// opened returns where the first of an object or array begins. One without any
// is left to encoding/json.
func opened(text []byte, bracket byte) (int, bool) {
	at := skipSpace(text, 0)
	if at >= len(text) || text[at] != bracket {
		return at, false
	}
	return skipSpace(text, at+1), true
}

// after returns where the next begins; the end of the text behind the last.
func after(text []byte, at int, closing byte) (int, bool) {
	at = skipSpace(text, at)
	if at >= len(text) || text[at] != ',' && text[at] != closing {
		return len(text), false
	}
	if text[at] == ',' {
		at = skipSpace(text, at+1)
		return at, at < len(text)
	}
	at = skipSpace(text, at+1)
	return len(text), at == len(text)
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' ||
		text[at] == '\r' || text[at] == '\t') {
		at++
	}
	return at
}

// valueEnd returns at if no value ends there.
func valueEnd(text []byte, at int) int {
	depth := 0
	for n := at; n < len(text); n++ {
		switch text[n] {
		case '"':
			length := bytes.IndexByte(text[n+1:], '"')
			if length < 0 || bytes.IndexByte(text[n+1:n+1+length], '\\') >= 0 {
				return at // an escape: rare
			}
			if n += length + 1; depth == 0 {
				return n + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return n
			}
			if depth--; depth == 0 {
				return n + 1
			}
		case ',', ':', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return n
			}
		}
	}
	return at
}

// readText returns false unless it is a plain one.
func readText(value []byte, to *string) bool {
	if len(value) < 2 || value[0] != '"' {
		return false
	}
	inner := value[1 : len(value)-1]
	for _, c := range inner {
		if c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	*to = string(inner)
	return true
}

// readNumber returns false for a number that is negative, long, or no integer.
func readNumber(value []byte, to *int64) bool {
	if len(value) > 18 || value[0] == '0' && len(value) > 1 {
		return false
	}
	number := int64(0)
	for _, c := range value {
		if c < '0' || c > '9' {
			return false
		}
		number = number*10 + int64(c-'0')
	}
	*to = number
	return true
}

// times are those of a grant, together in one piece of memory.
type times struct{ ttl, elapsed, validity, renewAfter int64 }

// read returns false if there is more to it than a plain grant or a release.
func (f *fields) read(text []byte) bool {
	all := &times{}
	return members(text, func(name, value []byte) bool {
		switch string(name) {
		case "id":
			return readText(value, &f.ID)
		case "resource":
			return readText(value, &f.Resource)
		case "token":
			return readText(value, &f.Token)
		case "mode":
			return readText(value, &f.Mode)
		case "fencing_token":
			return readNumber(value, &f.FencingToken)
		case "ttl_ms":
			f.TTLMs = &all.ttl
			return readNumber(value, &all.ttl)
		case "elapsed_ms":
			f.ElapsedMs = &all.elapsed
			return readNumber(value, &all.elapsed)
		case "validity_ms":
			f.ValidityMs = &all.validity
			return readNumber(value, &all.validity)
		case "renew_after_ms":
			f.RenewAfterMs = &all.renewAfter
			return readNumber(value, &all.renewAfter)
		case "waited_ms":
			return readNumber(value, &f.WaitedMs)
		case "released":
			f.Released = string(value) == "true"
			return true
		case "owner":
			return readText(value, &f.Owner)
		}
		return !isRare[string(name)]
	})
}

// isRare: those of the fields that read does not know.
var isRare = map[string]bool{"code": true, "detail": true,
	"retry_after_ms": true, "held_by": true, "locks": true, "next_cursor": true,
	"resources": true, "slots": true, "held": true, "version": true,
	"remaining_ms": true, "waiters": true, "readers": true}

// take leaves what is no JSON object empty.
func (f *fields) take(text []byte) {
	if !f.read(text) {
		*f = fields{}
		if json.Unmarshal(text, f) != nil {
			*f = fields{}
		}
	}
}

// result is what came of an operation within a batch.
type result struct {
	Status                  int
	Grant, Problem, Release json.RawMessage
}

func (r *result) read(text []byte) bool {
	return members(text, func(name, value []byte) bool {
		switch string(name) {
		case "status":
			var status int64
			is := readNumber(value, &status)
			r.Status = int(status)
			return is
		case "grant":
			r.Grant = value
		case "problem":
			r.Problem = value
		case "release":
			r.Release = value
		}
		return true
	})
}

func (r *result) answer(a *answer) {
	a.status = r.Status
	for _, body := range [...]json.RawMessage{r.Grant, r.Problem} {
		if body != nil {
			a.body.take(body)
		}
	}
}

// readResults returns those of a batch; nil: there are none, or not as they
// should be.
func readResults(text []byte) []*answer {
	all := make([]result, 0, batchOperations)
	if !members(text, func(name, value []byte) bool {
		return string(name) != "results" || elements(value, func(value []byte) bool {
			all = append(all, result{})
			return all[len(all)-1].read(value)
		})
	}) {
		var batch struct{ Results []result }
		if json.Unmarshal(text, &batch) != nil {
			return nil
		}
		all = batch.Results
	}
	answers, results := make([]answer, len(all)), make([]*answer, len(all))
	for n := range all {
		if all[n].Status < 200 || all[n].Status > 599 {
			return nil
		}
		all[n].answer(&answers[n])
		results[n] = &answers[n]
	}
	return results
}

// SPDX-License-Identifier: MIT

package redlockd

import (
	"encoding/json"
	"strconv"
)

// What is asked as text: the body of a request, alone or within a batch.

// appendName begins the next member of an object.
func appendName(text []byte, name string) []byte {
	if len(text) > 0 {
		text = append(text, ',')
	}
	text = append(text, '"')
	text = append(text, name...)
	return append(text, '"', ':')
}

func appendNumber(text []byte, name string, number int64) []byte {
	return strconv.AppendInt(appendName(text, name), number, 10)
}

func appendText(text []byte, name, value string) []byte {
	return appendQuoted(appendName(text, name), value)
}

func appendTexts(text []byte, name string, values []string) []byte {
	text = append(appendName(text, name), '[')
	for n, value := range values {
		if n > 0 {
			text = append(text, ',')
		}
		text = appendQuoted(text, value)
	}
	return append(text, ']')
}

func appendQuoted(text []byte, value string) []byte {
	for n := 0; n < len(value); n++ {
		if c := value[n]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(value) // a string has no error
			return append(text, quoted...)
		}
	}
	text = append(text, '"')
	text = append(text, value...)
	return append(text, '"')
}

// operationOverhead is at least what the text of an operation has beside its
// members, id, token and key.
const operationOverhead = 96

// size is at least that of its text within a batch.
func (r *request) size() int {
	return operationOverhead + len(r.members) + len(r.id) + len(r.token) +
		len(r.key)
}

// append adds its text within a batch.
func (r *request) append(text []byte) []byte {
	text = append(text, `{"operation":`...)
	text = appendQuoted(text, string(r.kind))
	for _, one := range [...]struct{ name, value string }{
		{"id", r.id}, {"token", r.token}, {"idempotency_key", r.key}} {
		if one.value != "" {
			text = appendText(text, one.name, one.value)
		}
	}
	if len(r.members) > 0 {
		text = append(text, ',')
		text = append(text, r.members...)
	}
	return append(text, '}')
}

// body returns nil if the flight has none.
func (f *flight) body() []byte {
	if f.isBatch {
		size := 0
		for _, o := range f.operations {
			size += o.request.size()
		}
		text := append(make([]byte, 0, size+operationOverhead),
			`{"operations":[`...)
		for n, o := range f.operations {
			if n > 0 {
				text = append(text, ',')
			}
			text = o.request.append(text)
		}
		return append(text, "]}"...)
	}
	r := f.operations[0].request
	if r.members == nil {
		return nil
	}
	text := append(make([]byte, 0, len(r.members)+operationOverhead), '{')
	text = append(text, r.members...)
	if ms := f.wait.Milliseconds(); ms > 0 {
		text = appendNumber(text, "wait_ms", ms)
	}
	return append(text, '}')
}

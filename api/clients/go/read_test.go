// SPDX-License-Identifier: MIT

package redlockd

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"testing"
)

const plainGrant = `{"id":"order:42","resource":"order:42","mode":"exclusive",
	"token":"1795232967010985.15efaee6.web-3", "fencing_token":1795232967010985,
	"ttl_ms":30000,"validity_ms":29691,"elapsed_ms":0,"renew_after_ms":9897,
	"owner":"web-3","waited_ms":12,"nodes":{"total":5,"granted":[1,2,3]}}`

var answersOfAllKinds = []string{plainGrant, `{"released":true}`, `{}`, ``, `[]`,
	`{"id":"~x","resources":["a","b"],"slots":[1,2],"token":"1.x"}`,
	`{"id":"a\"b","token":"ü"}`, "{\"id\":\"\xff\"}", `{"id":7}`, `{"ttl_ms":"7"}`,
	`{"ttl_ms":1.5}`, `{"ttl_ms":-0}`, `{"ttl_ms":007}`, `{"ttl_ms":+7}`,
	`{"ttl_ms":null,"waited_ms":1e3}`, `{"ttl_ms":99999999999999999999}`,
	`{"status":409,"code":"lock_held","detail":"\u00fc","retry_after_ms":27,
	"held_by":{"mode":"exclusive","remaining_ms":29982,"owner":"web-3"}}`,
	`{"id":"a","held":false,"version":"free"}`, `{"id":"a"} {}`, `{"id":"a",}`,
	`{"id" "a"}`, `{"id":}`, `{,}`, `{"id":"a"`, `{"id":"a`, `<html>{"id":"a"}`,
	` { "id" : "a" , "token" : "b" } `, `{"a":{"b":["}"]},"id":"c"}`}

// sameAsJSON compares what is read fast with what encoding/json reads. Only what
// nobody looks at may be wrong.
func sameAsJSON(t *testing.T, text []byte) {
	t.Helper()
	var fast, want fields
	if !fast.read(text) {
		return // then encoding/json reads it
	}
	if err := json.Unmarshal(text, &want); err != nil {
		if json.Valid(text) {
			t.Fatalf("%s: %v", text, err)
		}
		return
	}
	if !reflect.DeepEqual(fast, want) {
		t.Fatalf("%s: %+v, not %+v", text, fast, want)
	}
}

func TestAnswersAreReadAsByTheLibrary(t *testing.T) {
	var fast fields
	if !fast.read([]byte(plainGrant)) {
		t.Fatal("this is to be fast")
	}
	seed := rand.Int63()
	t.Log("seed", seed)
	random := rand.New(rand.NewSource(seed))
	for _, text := range answersOfAllKinds {
		sameAsJSON(t, []byte(text))
		for cut := range text {
			sameAsJSON(t, []byte(text[:cut]))
		}
		for n := 0; n < 2000 && text != ""; n++ {
			broken := []byte(text)
			for k := random.Intn(3); k >= 0; k-- {
				broken[random.Intn(len(text))] = `{}[]",:\ 07ax-+`[random.Intn(15)]
			}
			sameAsJSON(t, broken)
			readResults(broken) // and nothing panics
			readResults([]byte(`{"results":[` + string(broken) + `]}`))
		}
	}
}

// What was cut off is no grant.
func TestAGrantThatIsCutOffIsNone(t *testing.T) {
	for cut := range plainGrant {
		if readGrant(answered(201, plainGrant[:cut])) != nil {
			t.Fatal(plainGrant[:cut])
		}
	}
	if readGrant(answered(201, plainGrant)) == nil {
		t.Fatal("this is one")
	}
}

func TestResults(t *testing.T) {
	for _, text := range []string{
		`{"results":[{"status":201,"grant":` + plainGrant + `},{"status":409,
		"problem":{"code":"lock_held","detail":"x\"y"}},
		{"status":200,"release":{"released":true}}]}`,
		`{"results":[{"status":201,"grant":` + plainGrant + `},{"status":409,
		"problem":{"code":"lock_held"}},{"release":{},"status":200}],"x":"\n"}`,
	} {
		all := readResults([]byte(text))
		equal(t, len(all), 3)
		equal(t, readGrant(all[0]).token, "1795232967010985.15efaee6.web-3")
		equal(t, words(all[1].status, all[1].code()), "409 lock_held")
		equal(t, all[2].status, 200)
	}
	for _, text := range []string{``, `<html>`, `[]`, `{}`, `{"results":[]}`,
		`{"results":[{"status":9}]}`, `{"results":[{}]}`, `{"results":{}}`,
		`{"results":[{"status":200},]}`, `{"results":[{"status":200}`,
		`{"results":[{"status":200}]`, `{"results":["status"]}`} {
		if all := readResults([]byte(text)); len(all) != 0 {
			t.Fatal(text, all)
		}
	}
}

package redlockd

import "testing"

const plainGrant = `{"id":"order:42","resource":"order:42","mode":"exclusive",
	"token":"1795232967010985.15efaee6.web-3", "fencing_token":1795232967010985,
	"ttl_ms":30000,"validity_ms":29691,"elapsed_ms":0,"renew_after_ms":9897,
	"owner":"web-3","waited_ms":12,"nodes":{"total":5,"granted":[1,2,3]}}`

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

package redlockd

import "encoding/json"

// Answers as text.

// result is what came of an operation within a batch.
type result struct {
	Status                  int
	Grant, Problem, Release json.RawMessage
}

func (r *result) answer(a *answer) {
	a.status = r.Status
	for _, body := range [...]json.RawMessage{r.Grant, r.Problem} {
		if body != nil {
			a.body.take(body)
		}
	}
}

// take leaves what is no JSON object empty.
func (f *fields) take(text []byte) {
	if json.Unmarshal(text, f) != nil {
		*f = fields{}
	}
}

// readResults returns those of a batch; nil: there are none, or not as they
// should be.
func readResults(text []byte) []*answer {
	var batch struct{ Results []result }
	if json.Unmarshal(text, &batch) != nil {
		return nil
	}
	all := batch.Results
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

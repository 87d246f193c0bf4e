package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

const noAnswer = "no_answer"

var start = time.Now()

// fields are those of a request or of its answer.
type fields map[string]any

func (f fields) text(name string) string { return fmt.Sprint(f[name]) }

func (f fields) ms(name string) time.Duration {
	number, _ := f[name].(float64)
	return time.Duration(number) * time.Millisecond
}

// ask returns the answer of the first replica that has one.
func (l *Lock) ask(ctx context.Context, limit time.Duration, method, path string,
	body fields) fields {
	told := fields{"code": noAnswer}
	for range l.URLs {
		sent := time.Since(start)
		url := l.URLs[int(l.replica.Load())%len(l.URLs)] + path
		status, answer, err := l.askOne(ctx, limit, method, url, body)
		if err == nil && status < 429 {
			if answer["validity_ms"] != nil {
				l.until.Store(int64(sent + answer.ms("elapsed_ms") + answer.ms("validity_ms")))
			}
			return answer
		}
		if err == nil {
			told["retry_after_ms"] = answer["retry_after_ms"]
		}
		l.replica.Add(1) // later calls begin with it, too
	}
	return told
}

func (l *Lock) askOne(ctx context.Context, limit time.Duration, method, url string,
	body fields) (int, fields, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {l.key}}
	if bearer := os.Getenv("REDLOCKD_AUTH_TOKEN"); bearer != "" { // our token, if redlockd wants one
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	var answer fields
	err = json.NewDecoder(response.Body).Decode(&answer)
	return response.StatusCode, answer, err
}

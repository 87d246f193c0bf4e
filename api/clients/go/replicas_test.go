// SPDX-License-Identifier: MIT

package redlockd

import (
	"testing"
	"time"
)

func TestNoPasswordIsShown(t *testing.T) {
	for text, want := range map[string]string{
		"http://me:secret@host:1/x@y": "http://host:1/x@y",
		"me:secret@host":              "host",
		"http://host/a@b":             "http://host/a@b",
	} {
		if shown(text) != want {
			t.Fatal(shown(text))
		}
	}
}

func TestBackoffIsRandom(t *testing.T) {
	delays := map[time.Duration]bool{}
	for n := 0; n < 20; n++ {
		d := backoff(3, nil)
		if d < 200*time.Millisecond || d > 400*time.Millisecond {
			t.Fatal(d)
		}
		delays[d] = true
	}
	if len(delays) < 10 || backoff(100, nil) > backoffLast {
		t.Fatal(delays)
	}
}

func TestTheClockRunsOn(t *testing.T) {
	before := now()
	time.Sleep(20 * time.Millisecond)
	if d := now().sub(before); d < 20*time.Millisecond {
		t.Fatal(d)
	}
}

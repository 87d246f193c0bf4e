// SPDX-License-Identifier: MIT

package user

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	redlockd "github.com/redlockd/redlockd/api/clients/go"
)

func pageOf(body m) action {
	text, _ := json.Marshal(body)
	return page(200, string(text))
}

func TestPagesAreFollowed(t *testing.T) {
	t.Parallel()
	b := m{"id": "b", "resource": "b", "waiters": 0}
	f := newFake(t, nil).on("GET", nil,
		pageOf(m{"locks": []m{{"id": "a", "resource": "a", "owner": "me",
			"version": "1795221641865007", "fencing_token": 1795221641865007, "remaining_ms": 1500}, b}, "next_cursor": "x&y"}),
		pageOf(m{"locks": []m{}, "next_cursor": "z"}),
		pageOf(m{"locks": []m{b, {"id": "c", "resources": []string{"c", "d"}, "readers": 2}}}))
	found, err := newClient(t, redlockd.Config{}, f).Locks(background, "a&b/ü")
	must(t, err)
	equal(t, len(found), 3)
	equal(t, fmt.Sprintf("%+v", found[0]), "{ID:a Resources:[a] Slots:[] Owner:me "+
		"FencingToken:1795221641865007 Remaining:1.5s Waiters:0 Readers:0 "+
		"Version:1795221641865007}")
	equal(t, []any{found[2].Resources, found[2].Readers}, "[[c d] 2]")
	equal(t, f.of("GET")[0].path, "/locks?page_size=1000&prefix=a%26b%2F%C3%BC")
	isTrue(t, strings.Contains(f.of("GET")[1].path, "cursor=x%26y"), "the cursor")
}

func TestWatch(t *testing.T) {
	holder := func(number int) action {
		return pageOf(m{"id": "a", "resource": "a", "owner": "web", "held": true,
			"version": fmt.Sprint(number), "fencing_token": number})
	}
	f := newFake(t, nil).on("GET", silent, holder(7), free)
	ctx, cancel := context.WithCancel(background)
	var seen []string
	before := goroutines()
	err := newClient(t, redlockd.Config{}, f).Watch(ctx, "a b/c",
		func(h *redlockd.Holder) error {
			if h == nil {
				seen = append(seen, "free")
				go func() {
					waitUntil(t, func() bool { return f.count("GET") == 3 }, "a wait")
					cancel()
				}()
			} else {
				seen = append(seen, fmt.Sprint(h.FencingToken))
			}
			return nil
		})
	equal(t, err, context.Canceled)
	equal(t, seen, []string{"7", "free"})
	equal(t, f.of("GET")[1].path, "/locks/a%20b%2Fc?after=7&wait_ms=10000")
	waitUntil(t, f.hasLeft, "the connection was closed")
	waitUntil(t, func() bool { return goroutines() <= before }, "no goroutine is left")
	ours := errors.New("enough")
	f.on("GET", free)
	err = newClient(t, redlockd.Config{}, f).Watch(background, "a",
		func(*redlockd.Holder) error { return ours })
	equal(t, err, ours)
}

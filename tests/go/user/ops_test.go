package user

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd.example/redlockd"
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

func TestGet(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil).on("GET", nil, pageOf(m{"id": "~YS9i", "resource": "a/b",
		"slots": []int{3, 7}, "held": true, "version": "7", "fencing_token": 7, "owner": "me"}), free, problem(400, "invalid_request", nil))
	client := newClient(t, redlockd.Config{}, f)
	holder, err := client.Get(background, "a/b ü~")
	must(t, err)
	equal(t, []any{holder.Owner, holder.Resources, holder.Slots}, "[me [a/b] [3 7]]")
	equal(t, f.of("GET")[0].path, "/locks/a%2Fb%20%C3%BC~")
	holder, err = client.Get(background, "a")
	isTrue(t, holder == nil && err == nil, "free")
	_, err = client.Get(background, "a")
	isTrue(t, errors.Is(err, redlockd.ErrRefused), "refused")
}

func TestForceRelease(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		act action
		is  bool
	}{{usual, true}, {notOwner, false}, {gone, false}} {
		f := newFake(t, nil).on("DELETE", one.act)
		client := newClient(t, redlockd.Config{}, f)
		is, err := client.ForceRelease(background, "~YS9i", 7)
		must(t, err)
		equal(t, is, one.is)
		is, err = client.ForceReleaseReaders(background, "b")
		must(t, err)
		equal(t, is, one.is)
		equal(t, f.of("")[0].path, "/locks/~YS9i?force=7")
		equal(t, f.of("")[1].path, "/locks/b?force=all")
	}
	f := newFake(t, nil).on("DELETE", problem(400, "invalid_request", nil))
	_, err := newClient(t, redlockd.Config{}, f).ForceRelease(background, "a", -1)
	isTrue(t, errors.Is(err, redlockd.ErrRefused), "refused")
}

func TestEachReplicaIsAskedOnce(t *testing.T) {
	t.Parallel()
	one, two := newFake(t, nil), newFake(t, nil)
	one.on("GET", cut)
	two.on("GET", cut, page(200, `{"locks": []}`))
	client := newClient(t, redlockd.Config{}, one, two)
	_, err := client.Locks(background, "")
	must(t, err)
	_, err = client.Locks(background, "")
	isTrue(t, errors.Is(err, redlockd.ErrUnavailable), "unavailable")
	// Go repeats a GET whose connection broke, if it had been used before
	isTrue(t, one.count("GET")+two.count("GET") >= 4, "all were asked")
}

func TestWatch(t *testing.T) {
	holder := func(number int) action {
		return pageOf(m{"id": "a", "resource": "a", "owner": "web", "held": true,
			"version": fmt.Sprint(number), "fencing_token": number})
	}
	one, two := newFake(t, nil), newFake(t, nil)
	one.on("GET", cut, holder(7), late(1100*time.Millisecond, holder(7)), free)
	two.on("GET", silent, holder(8), pageOf(m{"id": "a", "resource": "a",
		"held": true, "version": "shared", "readers": 2}))
	ctx, cancel := context.WithCancel(background)
	var seen []string
	before := goroutines()
	err := newClient(t, redlockd.Config{}, one, two).Watch(ctx, "a",
		func(h *redlockd.Holder) error {
			if h == nil {
				seen = append(seen, "free")
			} else {
				seen = append(seen, fmt.Sprint(h.FencingToken))
			}
			if len(seen) == 4 {
				time.AfterFunc(100*time.Millisecond, cancel)
			}
			return nil
		})
	equal(t, err, context.Canceled)
	equal(t, seen, []string{"7", "free", "8", "0"})
	waitUntil(t, two.hasLeft, "the connection was closed")
	waitUntil(t, func() bool { return goroutines() <= before }, "no goroutine is left")
	var asked []string
	for _, get := range append(one.of("GET"), two.of("GET")...) {
		asked = append(asked, strings.TrimPrefix(get.path, "/locks/a"))
	}
	equal(t, asked[:3], []string{"", "?after=7&wait_ms=10000", "?after=7&wait_ms=10000"})
	// one fails: two is asked without a wait
	equal(t, asked[len(asked)-3:], []string{"",
		"?after=8&wait_ms=10000", "?after=shared&wait_ms=10000"})
	ours := errors.New("enough")
	one.on("GET", free)
	err = newClient(t, redlockd.Config{}, one).Watch(background, "a",
		func(*redlockd.Holder) error { return ours })
	equal(t, err, ours)
}

package redlockd

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const one, two, three = "http://one", "http://two", "http://three"

var order = Options{Resources: []string{"order:42"}}

func TestRepeatsHaveTheSameKeyAndGoToTheNextReplica(t *testing.T) {
	g := newGame(t, one, two)
	talk := newAcquiring(g.parties, order, "key", g.at)
	first := g.asked(talk, nil)
	second := g.asked(talk, nobody())
	third := g.asked(talk, problem(503, "no_quorum"))
	equal(t, first.url+second.url+third.url,
		one+"/locks"+two+"/locks"+one+"/locks")
	for _, r := range []*asked{first, second, third} {
		equal(t, r.key, "key")
	}
	equal(t, g.ended(talk, granting(200, nil)), nil)
	equal(t, talk.granted.token, "17.secret")
}

func TestValidityCountsFromBeforeTheRequest(t *testing.T) {
	g := newGame(t, one)
	talk := newAcquiring(g.parties, order, "key", g.at)
	g.asked(talk, nil)
	sent := g.at
	g.at = g.at.add(2 * time.Second)
	equal(t, g.ended(talk, granting(201, map[string]any{"elapsed_ms": 7})), nil)
	equal(t, talk.granted.until, sent.add(9907*time.Millisecond))
	hold := newHold(&order, talk.granted, g.clock)
	// a tenth of the TTL is for ending the work
	equal(t, hold.remaining(), 6907*time.Millisecond)
	equal(t, hold.validity(), 7907*time.Millisecond)
}

func TestAReplicaThatFailedIsAskedLastForAWhile(t *testing.T) {
	g := newGame(t, one, two)
	g.parties.replicas.avoid(one, g.at)
	equal(t, g.parties.replicas.choose(g.at.add(999*time.Millisecond)), two)
	equal(t, g.parties.replicas.choose(g.at.add(time.Second)), one)
}

func TestALongWaitIsSliced(t *testing.T) {
	g := newGame(t, one)
	options := order
	options.Wait = 15 * time.Second
	talk := newAcquiring(g.parties, options, "key", g.at)
	held := answered(409, `{"code":"lock_held","waited_ms":10000,
		"retry_after_ms":60000,"held_by":{"owner":"web-3","fencing_token":7,
		"remaining_ms":1500}}`)
	first := g.asked(talk, nil)
	equal(t, first.body["wait_ms"], 10000)
	equal(t, first.wait, 10*time.Second)
	g.at = g.at.add(10 * time.Second)
	equal(t, g.asked(talk, held).body["wait_ms"], 5000)
	g.at = g.at.add(5 * time.Second)
	var told *HeldError
	if err := g.ended(talk, held); !errors.As(err, &told) ||
		!errors.Is(err, ErrHeld) {
		t.Fatal(err)
	}
	equal(t, told.Owner, "web-3")
	equal(t, told.FencingToken, 7)
	equal(t, told.Remaining, 1500*time.Millisecond)
}

func TestHeldWithoutAWaitIsAskedAgainWhenTold(t *testing.T) {
	g := newGame(t, one)
	talk := newAcquiring(g.parties, order, "key", g.at)
	g.asked(talk, nil)
	held := answered(409, `{"code":"lock_held","retry_after_ms":20}`)
	equal(t, g.paused(talk, held), 20*time.Millisecond)
}

func TestAReplicaIsAvoidedForLongerEachTimeAndProbed(t *testing.T) {
	g := newGame(t, one, two)
	r, at, due := g.parties.replicas, g.at, 0
	r.due = func(string) { due++ }
	for n := 0; n < 64; n++ {
		r.avoid(one, at) // together: that is once
	}
	for _, wait := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		before := due
		equal(t, r.choose(at.add(wait*time.Second-1)), two)
		equal(t, due, before)
		at = at.add(wait * time.Second)
		equal(t, r.choose(at), two)
		equal(t, r.choose(at), two)
		equal(t, due, before+1)
		r.probed(one, false, at)
	}
	r.probed(one, true, at)
	equal(t, r.choose(at), one)
	r.avoid(one, at) // it only seemed to be back
	equal(t, r.choose(at.add(59*time.Second)), two)
	r.worked(one)
	r.avoid(one, at)
	r.avoid(two, at.add(1))
	equal(t, r.choose(at.add(2)), one) // it failed before the other
	r.avoid(one, at.add(2))
	equal(t, r.choose(at.add(3)), two)
}

func TestEachReplicaOnceAndOneOfThemAgain(t *testing.T) {
	g := newGame(t, one, two)
	talk := newAcquiring(g.parties, Options{Resources: []string{"a"},
		Wait: NoWait}, "k", g.at)
	g.asked(talk, nil)
	g.asked(talk, nobody())
	g.asked(talk, nobody())
	if err := g.ended(talk, nobody()); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
}

func TestAGrantThatCameTooLateIsAskedForAgain(t *testing.T) {
	g := newGame(t, one)
	talk := newAcquiring(g.parties, order, "key", g.at)
	g.asked(talk, nil)
	g.at = g.at.add(8901 * time.Millisecond) // a tenth is left
	again := g.asked(talk, granting(201, nil))
	equal(t, again.key, "key")
	equal(t, talk.late.token, "17.secret")
	equal(t, talk.mayHold(), true)
}

func TestWhatIsRefusedIsToldAtOnce(t *testing.T) {
	for status, want := range map[int]error{400: ErrRefused, 302: ErrRefused,
		401: ErrUnauthorized, 403: ErrForbidden} {
		g := newGame(t, one)
		talk := newAcquiring(g.parties, order, "key", g.at)
		g.asked(talk, nil)
		err := g.ended(talk, problem(status, "x"))
		if !errors.Is(err, want) || !errors.Is(err, ErrRefused) {
			t.Fatal(status, err)
		}
		equal(t, talk.mayHold(), false)
	}
}

func TestADenialIsThatOfAllReplicas(t *testing.T) {
	g := newGame(t, one, two)
	talk := newAcquiring(g.parties, order, "key", g.at)
	g.asked(talk, nil)
	equal(t, g.asked(talk, problem(401, "unauthorized")).url, two+"/locks")
	if err := g.ended(talk, problem(401, "x")); !errors.Is(err, ErrUnauthorized) {
		t.Fatal(err)
	}
}

func TestALimitOfOneReplicaDelaysOnlyTheLast(t *testing.T) {
	g := newGame(t, one, two)
	talk := newAcquiring(g.parties, order, "key", g.at)
	limited := answered(429, `{"code":"rate_limited","retry_after_ms":60000}`)
	g.asked(talk, nil)
	if d := g.paused(talk, limited); d > backoffLast {
		t.Fatal(d)
	}
	g.asked(talk, nil)
	equal(t, g.paused(talk, limited), 60*time.Second)
}

func TestRetractingGetsTheLockByItsKey(t *testing.T) {
	g := newGame(t, one, two)
	options := Options{Resources: []string{"a"}, TTL: time.Minute, Shared: true}
	talk := &retracting{parties: g.parties, options: options, key: "key"}
	g.asked(talk, nil)
	r := g.asked(talk, nobody())
	equal(t, r.key, "key")
	equal(t, fmt.Sprint(r.body["wait_ms"], r.body["ttl_ms"], r.body["mode"]),
		"0 100shared")
	equal(t, r.url, two+"/locks")
	// its validity does not count: it is to be released
	equal(t, g.ended(talk, granting(200, map[string]any{"validity_ms": 0})), nil)
	equal(t, talk.granted.token, "17.secret")
	held := &retracting{parties: g.parties, options: options, key: "key"}
	g.asked(held, nil)
	equal(t, g.ended(held, problem(409, "lock_held")), nil)
	equal(t, held.granted, nil)
}

func TestARenewalLeavesTimeForOtherReplicas(t *testing.T) {
	g := newGame(t, one, two, three)
	hold := g.holding(nil)
	talk := &extending{parties: g.parties, hold: hold}
	g.at = g.at.add(3 * time.Second)
	end := g.at.add(hold.remaining())
	asked := map[string]bool{}
	r := g.asked(talk, nil)
	for len(asked) < 3 {
		asked[r.url] = true
		g.at = g.at.add(r.timeout)
		if g.at >= end {
			t.Fatalf("only %v were asked", asked)
		}
		r = g.asked(talk, nobody())
	}
}

func TestRenewalsEndWithTheLock(t *testing.T) {
	for _, code := range []string{"lock_not_found", "not_owner"} {
		g := newGame(t, one)
		hold := g.holding(nil)
		talk := &extending{parties: g.parties, hold: hold}
		r := g.asked(talk, nil)
		equal(t, r.token, "17.secret")
		equal(t, r.url, one+"/locks/an~id/extend")
		if err := g.ended(talk, problem(409, code)); !errors.Is(err, ErrLost) {
			t.Fatal(err)
		}
		equal(t, hold.remaining(), time.Duration(0))
	}
	g := newGame(t, one)
	hold := g.holding(nil)
	talk := &extending{parties: g.parties, hold: hold}
	g.asked(talk, nil)
	equal(t, g.ended(talk, problem(409, "max_hold_reached")), nil)
	equal(t, talk.isAtItsEnd, true)
	equal(t, hold.err(), nil) // it ends with its validity
}

func TestWithoutAnExtendTheLockEndsATenthBeforeItsValidity(t *testing.T) {
	g := newGame(t, one)
	hold := g.holding(nil)
	end := hold.now().until.add(-time.Second)
	talk := &extending{parties: g.parties, hold: hold}
	s := talk.next(nil, g.at)
	for !s.isDone {
		if s.request != nil {
			s = talk.next(problem(503, "no_quorum"), g.at)
			continue
		}
		g.at = g.at.add(s.pause)
		s = talk.next(nil, g.at)
	}
	if !errors.Is(s.err, ErrLost) {
		t.Fatal(s.err)
	}
	if late := g.at.sub(end); late < 0 || late > 5*time.Millisecond {
		t.Fatal(late)
	}
}

func TestAnExtendNeverShortensTheLock(t *testing.T) {
	g := newGame(t, one)
	hold := g.holding(nil)
	hold.extended(g.granted(map[string]any{"validity_ms": 1}))
	equal(t, hold.validity(), 9900*time.Millisecond)
}

func TestDowngradeTakesTheNewToken(t *testing.T) {
	g := newGame(t, one)
	hold := g.holding(nil)
	renewal := &extending{parties: g.parties, hold: hold}
	g.asked(renewal, nil)
	talk := newDowngrade(g.parties, hold)
	equal(t, g.asked(talk, nil).body["mode"], "shared")
	shared := map[string]any{"mode": "shared", "token": "17~secret"}
	equal(t, g.ended(talk, granting(200, shared)), nil)
	// the renewal was asked with the old token: it is no loss
	again := g.asked(renewal, problem(409, "not_owner"))
	equal(t, again.token, "17~secret")
	equal(t, again.body["mode"], "shared")
	equal(t, g.ended(renewal, granting(200, nil)), nil) // answered late
	equal(t, hold.now().token, "17~secret")
	equal(t, hold.now().isShared, true)
}

func TestADowngradeThatAllServersRefuseChangesNothing(t *testing.T) {
	g := newGame(t, one, two)
	hold := g.holding(nil)
	talk := newDowngrade(g.parties, hold)
	g.asked(talk, nil)
	g.asked(talk, problem(400, "invalid_request"))
	if err := g.ended(talk, problem(400, "x")); !errors.Is(err, ErrRefused) {
		t.Fatal(err)
	}
	equal(t, hold.isSharedWanted(), false)
}

func TestALostReleaseIsNoLoss(t *testing.T) {
	g := newGame(t, one)
	gone := problem(404, "lock_not_found")
	talk := &releasing{parties: g.parties, hold: g.holding(nil)}
	g.asked(talk, nil)
	g.asked(talk, nobody())
	equal(t, g.ended(talk, gone), nil)
	talk = &releasing{parties: g.parties, hold: g.holding(nil)}
	g.asked(talk, nil)
	g.asked(talk, problem(401, "unauthorized")) // has not released anything
	if err := g.ended(talk, gone); !errors.Is(err, ErrLost) {
		t.Fatal(err)
	}
}

func TestWatching(t *testing.T) {
	g := newGame(t, one, two)
	talk := &watching{parties: g.parties, path: pathOf("a/b")}
	equal(t, g.asked(talk, nil).url, one+"/locks/a%2Fb")
	free := answered(200, `{"id":"x","resource":"a","held":false,"version":"free"}`)
	equal(t, g.ended(talk, free), nil)
	equal(t, talk.holder, nil)
	r := g.asked(talk, nil)
	equal(t, r.url, one+"/locks/a%2Fb?after=free&wait_ms=10000")
	equal(t, r.wait, 10*time.Second)
	g.at = g.at.add(10 * time.Second)
	g.asked(talk, free) // still
	holder := answered(200, `{"id":"x","resource":"a","held":true,"version":"7",
		"fencing_token":7}`)
	equal(t, g.ended(talk, holder), nil)
	equal(t, talk.holder.FencingToken, 7)
	if r = g.asked(talk, nil); !strings.Contains(r.url, "?after=7&") {
		t.Fatal(r.url)
	}
	// after a failure it looks at once: a server that stops does not wait
	equal(t, g.asked(talk, nobody()).url, two+"/locks/a%2Fb")
	// a second later, it asks the first again
	equal(t, g.asked(talk, holder).url, one+"/locks/a%2Fb?after=7&wait_ms=10000")
	// a server that answers at once all the same is not flooded
	equal(t, g.paused(talk, holder), time.Second)
	g.asked(talk, nil)
	if err := g.ended(talk, problem(400, "x")); !errors.Is(err, ErrRefused) {
		t.Fatal(err)
	}
}

func TestWhatCountsForAWatchIsTheVersion(t *testing.T) {
	g := newGame(t, one)
	talk := &watching{parties: g.parties, path: pathOf("a")}
	lock := func(version, more string) *answer {
		return answered(200, `{"id":"x","held":true,"version":"`+version+`"`+more+`}`)
	}
	g.asked(talk, nil)
	equal(t, g.ended(talk, lock("foreign-1f", "")), nil)
	equal(t, g.ended(talk, lock("foreign-2e", "")), nil)
	equal(t, g.ended(talk, lock("shared", `,"readers":2`)), nil)
	equal(t, talk.holder.Readers, 2)
	r := g.asked(talk, nil)
	equal(t, r.url, one+"/locks/a?after=shared&wait_ms=10000")
	g.at = g.at.add(10 * time.Second)
	g.asked(talk, lock("shared", `,"readers":3`)) // no change
	equal(t, talk.holder.Version, "shared")
}

func TestEachReplicaIsAskedOnce(t *testing.T) {
	g := newGame(t, one, two)
	talk := &asking{parties: g.parties, method: "GET", path: "/locks"}
	g.asked(talk, nil)
	g.asked(talk, problem(401, "unauthorized"))
	err := g.ended(talk, nobody())
	if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrRateLimited) {
		t.Fatal(err)
	}
}

func TestAnswersThatMakeNoSense(t *testing.T) {
	for _, text := range []string{`{"id":"an~id","tok`, `[]`, `{"token":1}`,
		`<html>`, ``} {
		a := answered(201, text)
		if readGrant(a) != nil || a.isFinal() {
			t.Fatal(text)
		}
	}
	equal(t, readAnswer(429, nil, "2").retryAfter(), 2*time.Second)
}

func TestNoPasswordIsShown(t *testing.T) {
	for text, want := range map[string]string{
		"http://me:secret@host:1/x@y": "http://host:1/x@y",
		"me:secret@host":              "host",
		"http://host/a@b":             "http://host/a@b",
	} {
		equal(t, shown(text), want)
	}
}

func TestBackoffGrowsIsRandomAndHeedsTheServer(t *testing.T) {
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
	equal(t, backoff(0, readAnswer(503, nil, "9")), 9*time.Second)
}

func TestTheClockRunsOn(t *testing.T) {
	before := now()
	time.Sleep(20 * time.Millisecond)
	if d := now().sub(before); d < 20*time.Millisecond {
		t.Fatal(d)
	}
}

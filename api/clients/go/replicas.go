// SPDX-License-Identifier: MIT

package redlockd

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	defaultURL = "http://127.0.0.1:8080"
	// a replica that failed is asked last for this long, and then for twice that
	avoidFirst             = time.Second
	avoidLast              = time.Minute
	avoidDoublesAtMost     = 6
	backoffFirst           = 50 * time.Millisecond
	backoffLast            = 2 * time.Second
	backoffDoublesAtMost   = 10
	randomStepsOfTheDelays = 1 << 20
)

// replicas are the servers, and which one to ask. A replica that failed, or whose
// answer is overdue, is avoided: for longer each time, until it answers a request
// in time. When that time has passed it is probed, so that no lock waits to find
// out. Goroutines may share them.
type replicas struct {
	urls    []string
	mutex   sync.Mutex
	avoided map[string]*avoidance
	// is told which one to probe; nil: the next request does it
	due func(url string)
}

type avoidance struct {
	is, isProbed bool
	failed       instant
	until        instant
	times        uint
}

func newReplicas(urls []string) (*replicas, error) {
	if len(urls) == 0 {
		text := os.Getenv("REDLOCKD_URL")
		if text == "" {
			text = defaultURL
		}
		urls = strings.Split(text, ",")
	}
	r := &replicas{avoided: map[string]*avoidance{}}
	for _, one := range urls {
		one = strings.TrimRight(strings.TrimSpace(one), "/")
		if one == "" {
			continue
		}
		if err := checkURL(one); err != nil {
			return nil, err
		}
		r.urls = append(r.urls, one)
	}
	if len(r.urls) == 0 {
		return nil, errors.New("name at least one URL of redlockd")
	}
	return r, nil
}

func checkURL(text string) error {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" ||
		parsed.Scheme != "http" && parsed.Scheme != "https" {
		return fmt.Errorf("not an http:// or https:// URL: %s", shown(text))
	}
	return nil
}

// shown is the URL without a user and a password.
func shown(text string) string {
	scheme, rest, isURL := strings.Cut(text, "://")
	if !isURL {
		scheme, rest = "", text
	} else {
		scheme += "://"
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	return scheme + rest[strings.LastIndex(rest[:end], "@")+1:]
}

func allShown(urls []string) []string {
	texts := make([]string, len(urls))
	for n, one := range urls {
		texts[n] = shown(one)
	}
	return texts
}

// choose returns the first that is not avoided; if all are, the one that failed
// first. Waiting clients are served in order only if they ask the same server.
func (r *replicas) choose(now instant) string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	best, bestFailed, chosen := "", instant(math.MaxInt64), ""
	for _, one := range r.urls {
		if !r.isAvoided(one, now) {
			if chosen == "" {
				chosen = one
			}
		} else if failed := r.avoided[one].failed; failed < bestFailed {
			best, bestFailed = one, failed
		}
	}
	if chosen != "" {
		return chosen
	}
	return best
}

func (r *replicas) isAvoided(one string, now instant) bool {
	a := r.avoided[one]
	if a == nil || !a.is {
		return false
	}
	if now < a.until {
		return true
	}
	if r.due == nil || len(r.urls) == 1 {
		return false
	}
	if !a.isProbed {
		a.isProbed = true
		r.due(one)
	}
	return true
}

func (r *replicas) avoid(one string, now instant) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	a := r.avoided[one]
	if a == nil {
		a = &avoidance{}
		r.avoided[one] = a
	}
	// many requests that fail together count as one
	if !a.is || now >= a.until {
		d := shorter(avoidFirst<<a.times, avoidLast)
		// random, so that clients do not probe together
		a.until = now.add(between(d-d/4, d))
		if a.times < avoidDoublesAtMost {
			a.times++
		}
	}
	a.is, a.failed = true, now
}

// worked: it answered a request, in time.
func (r *replicas) worked(one string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.avoided, one)
}

func (r *replicas) probed(one string, isAlive bool, now instant) {
	r.mutex.Lock()
	if a := r.avoided[one]; a != nil {
		a.isProbed = false
		if isAlive {
			a.is = false // if it fails again, for longer
		}
	}
	r.mutex.Unlock()
	if !isAlive {
		r.avoid(one, now)
	}
}

// delay is how long to pause after so many failures. What the answer says about
// it is heeded only once each replica has failed: another one, which is asked
// next, need not be busy.
func (r *replicas) delay(failures int, a *answer) time.Duration {
	if failures%len(r.urls) != 0 {
		a = nil
	}
	return backoff(failures, a)
}

// backoff is random, so that clients that failed together do not retry
// together; it is never shorter than what told says, if that is not nil.
func backoff(failures int, told *answer) time.Duration {
	if failures > backoffDoublesAtMost {
		failures = backoffDoublesAtMost
	}
	longest := shorter(backoffLast, backoffFirst<<uint(failures))
	delay := between(longest/2, longest)
	if told != nil {
		delay = longer(delay, told.retryAfter())
	}
	return delay
}

// between is a random time.
func between(shortest, longest time.Duration) time.Duration {
	var random [4]byte
	_, _ = rand.Read(random[:]) // zeros would do
	part := binary.LittleEndian.Uint32(random[:]) % randomStepsOfTheDelays
	return shortest +
		(longest-shortest)*time.Duration(part)/randomStepsOfTheDelays
}

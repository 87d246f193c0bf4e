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
	// a replica that failed is asked last for this long
	avoidFor               = 5 * time.Second
	backoffFirst           = 50 * time.Millisecond
	backoffLast            = 2 * time.Second
	backoffDoublesAtMost   = 10
	randomStepsOfTheDelays = 1 << 20
)

// replicas are the servers, and which one to ask. Goroutines may share them.
type replicas struct {
	urls       []string
	mutex      sync.Mutex
	avoidUntil map[string]instant
}

func newReplicas(urls []string) (*replicas, error) {
	if len(urls) == 0 {
		text := os.Getenv("REDLOCKD_URL")
		if text == "" {
			text = defaultURL
		}
		urls = strings.Split(text, ",")
	}
	r := &replicas{avoidUntil: map[string]instant{}}
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

// choose returns the first that did not fail just now. Waiting clients are
// served in order only if they ask the same server.
func (r *replicas) choose(now instant) string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	best, bestUntil := "", instant(math.MaxInt64)
	for _, one := range r.urls {
		until := r.avoidUntil[one]
		if until < now {
			until = now
		}
		if until < bestUntil {
			best, bestUntil = one, until
		}
	}
	return best
}

func (r *replicas) avoid(one string, now instant) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.avoidUntil[one] = now.add(avoidFor)
}

// backoff is random, so that clients that failed together do not retry
// together; it is never shorter than what told says, if that is not nil.
func backoff(failures int, told *answer) time.Duration {
	if failures > backoffDoublesAtMost {
		failures = backoffDoublesAtMost
	}
	longest := shorter(backoffLast, backoffFirst<<uint(failures))
	var random [4]byte
	_, _ = rand.Read(random[:]) // zeros would do
	part := binary.LittleEndian.Uint32(random[:]) % randomStepsOfTheDelays
	delay := longest/2 + longest/2*time.Duration(part)/randomStepsOfTheDelays
	if told != nil {
		delay = longer(delay, told.retryAfter())
	}
	return delay
}

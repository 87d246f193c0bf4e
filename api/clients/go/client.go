// SPDX-License-Identifier: MIT

package redlockd

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	defaultTimeout = 5 * time.Second
	// for what is cleaned up after a context has ended
	cleanUpTimeout = 2 * time.Second
	// a server closes connections that are idle for 75 s
	idleTimeout   = 60 * time.Second
	idleAtMost    = 256 // for each server; more than that wait for locks
	longestAnswer = 64 << 20
	// after this time, new requests had better go to another server
	overdueAfter = 500 * time.Millisecond
	probeTimeout = time.Second
)

// Config names the servers, and says who you are. What is omitted is taken from
// the environment. Printed, it does not show the token.
type Config struct {
	// URLs of the replicas; if there are none, those in REDLOCKD_URL, separated
	// by commas, or http://127.0.0.1:8080.
	URLs []string
	// Timeout for an answer; 0: 5 s.
	Timeout time.Duration
	// Token is your token for the servers, and TokenFile a file with it, which
	// is read again when the servers do not know the token. By default
	// REDLOCKD_AUTH_TOKEN or REDLOCKD_AUTH_TOKEN_FILE.
	Token, TokenFile string
	// CAFile has the CAs to trust, instead of the usual ones; by default
	// REDLOCKD_CACERT.
	CAFile string
	// CertFile and KeyFile are your own certificate and its key, which are read
	// again for each connection; by default REDLOCKD_CERT and REDLOCKD_KEY.
	CertFile, KeyFile string
	// TLS is used instead of these files.
	TLS *tls.Config
	// Logf is told what is tried again, and what could not be released, such as
	// log.Printf; nil: nobody is.
	Logf func(format string, arguments ...any)
}

// Format prints it without the token.
func (c Config) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "redlockd.Config{URLs: %q}", allShown(c.URLs))
}

// Client has connections to the servers, for any number of locks. Goroutines
// may share it.
type Client struct {
	parties
	identity *identity
	pool     *http.Client
	clock    func() instant
	keeper   keeper
	cleaning chores
	mutex    sync.Mutex
	line     line
}

// Format prints it without secrets.
func (c *Client) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "redlockd.Client{URLs: %q}", allShown(c.replicas.urls))
}

// New returns an error if a URL or a file is wrong. It asks no server.
func New(config Config) (*Client, error) {
	servers, err := newReplicas(config.URLs)
	if err != nil {
		return nil, err
	}
	who, err := newIdentity(&config)
	if err != nil {
		return nil, err
	}
	c := &Client{identity: who, clock: now, line: line{replicas: servers}}
	c.parties = parties{servers, config.Timeout, config.Logf}
	servers.due = func(url string) { go c.probe(url) }
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	if c.logf == nil {
		c.logf = func(string, ...any) {}
	}
	c.pool = &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment, // not for loopback
			DialContext:         (&net.Dialer{Timeout: c.timeout}).DialContext,
			TLSClientConfig:     who.tls,
			TLSHandshakeTimeout: c.timeout,
			MaxIdleConns:        0, // no limit
			MaxIdleConnsPerHost: idleAtMost,
			IdleConnTimeout:     idleTimeout,
			DisableCompression:  true,
		},
		// another host must not get the token
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	return c, nil
}

// Close closes idle connections. Release the locks before. It waits, for up to two
// seconds, for locks that are given back in the background, as their Acquire was
// cancelled: call it before the program ends.
func (c *Client) Close() {
	c.cleaning.wait(cleanUpTimeout)
	c.pool.CloseIdleConnections()
}

// chores are what is done in the background, and waited for.
type chores struct {
	mutex sync.Mutex
	count int
	none  chan struct{} // closed once there are none; nil: there were none yet
}

func (c *chores) begin() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.count == 0 {
		c.none = make(chan struct{})
	}
	c.count++
}

func (c *chores) end() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.count--; c.count == 0 {
		close(c.none)
	}
}

// wait is for those that have begun.
func (c *chores) wait(atMost time.Duration) {
	c.mutex.Lock()
	none, count := c.none, c.count
	c.mutex.Unlock()
	if count == 0 {
		return
	}
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-none:
	case <-timer.C:
	}
}

// Get returns the holder of a lock, nil if it is free. lock is a resource's name
// or a lock's id; a lock of several resources has only an id.
func (c *Client) Get(ctx context.Context, lock string) (*Holder, error) {
	t := &asking{parties: c.parties, method: "GET", path: pathOf(lock),
		isTold: isLock}
	if err := c.run(ctx, t); err != nil {
		return nil, err
	}
	if t.answer.status != 200 {
		return nil, refusal(lock, t.answer)
	}
	return holderOf(&t.answer.body.held), nil
}

// Watch calls changed with the holder of a lock, and then with each new one; nil
// if the lock is free. Readers who join others, or leave some behind, are no
// change. lock is as for Get. A holder that comes and goes within a second may be
// missed. Watch returns when ctx ends, with its error; when changed returns an
// error, with that; or when the servers refuse it.
func (c *Client) Watch(ctx context.Context, lock string,
	changed func(*Holder) error) error {
	t := &watching{parties: c.parties, path: pathOf(lock)}
	for {
		if err := c.run(ctx, t); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := changed(t.holder); err != nil {
			return err
		}
	}
}

// Locks returns the locks that are held, with resources that begin with prefix.
// A lock that is granted or ends meanwhile may be listed or not.
func (c *Client) Locks(ctx context.Context, prefix string) ([]Holder, error) {
	var found []Holder
	isSeen := map[string]bool{} // a lock may be on two pages
	for cursor := ""; ; {
		t := &asking{parties: c.parties, method: "GET",
			path: pathOfList(prefix, cursor), isTold: isList}
		if err := c.run(ctx, t); err != nil {
			return nil, err
		}
		if t.answer.status != 200 {
			return nil, refusal("the list", t.answer)
		}
		for n := range t.answer.body.Locks {
			lock := newHolder(&t.answer.body.Locks[n])
			if !isSeen[lock.ID] {
				isSeen[lock.ID] = true
				found = append(found, *lock)
			}
		}
		if cursor = t.answer.body.NextCursor; cursor == "" {
			return found, nil
		}
	}
}

// ForceRelease releases the lock of a dead holder, for operators; Locks has its
// id and its fencing token. The holder is not told. It returns false if no
// lock with this fencing token is held any more.
func (c *Client) ForceRelease(ctx context.Context, id string,
	fencingToken int64) (bool, error) {
	return c.force(ctx, id, strconv.FormatInt(fencingToken, 10))
}

// ForceReleaseReaders releases the locks of all readers. It returns false if no
// reader holds it.
func (c *Client) ForceReleaseReaders(ctx context.Context, id string) (bool,
	error) {
	return c.force(ctx, id, "all")
}

func (c *Client) force(ctx context.Context, id, which string) (bool, error) {
	t := &asking{parties: c.parties, method: "DELETE",
		path: pathOf(id) + "?force=" + which, isTold: isRelease}
	if err := c.run(ctx, t); err != nil {
		return false, err
	}
	if t.answer.isEnd() {
		return false, nil
	}
	if t.answer.status != 200 {
		return false, refusal(id, t.answer)
	}
	return true, nil
}

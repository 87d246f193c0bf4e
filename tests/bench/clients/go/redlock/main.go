// SPDX-License-Identifier: MIT

// redlock: cycles with Redlock over redigo, as redsync does it: one goroutine
// and one pool of connections for each node, all of which are waited for; SET
// with NX and PX, and a script to release. redsync itself is not in Debian.
package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log"
	"time"

	"bench/tally"
	"github.com/gomodule/redigo/redis"
)

// as redsync has them
const (
	driftFactor   = 0.01
	timeoutFactor = 0.05
)

var (
	errHeld = errors.New("held")
	delete  = redis.NewScript(1, `
	if redis.call("GET", KEYS[1]) == ARGV[1] then
		return redis.call("DEL", KEYS[1])
	else
		return 0
	end
`)
)

type manager []*redis.Pool

func newManager(clients int, nodes []string) manager {
	var m manager
	for _, node := range nodes {
		node := node
		m = append(m, &redis.Pool{MaxIdle: clients, IdleTimeout: time.Minute,
			DialContext: func(ctx context.Context) (redis.Conn, error) {
				return redis.DialContext(ctx, "tcp", node)
			}})
	}
	return m
}

// onAll returns on how many nodes it worked.
func (m manager) onAll(do func(redis.Conn) (bool, error)) int {
	ctx, cancel := context.WithTimeout(context.Background(),
		time.Duration(float64(tally.TTL)*timeoutFactor))
	defer cancel()
	replies := make(chan bool, len(m))
	for _, pool := range m {
		go func(pool *redis.Pool) {
			conn, err := pool.GetContext(ctx)
			if err != nil {
				replies <- false
				return
			}
			is, err := do(conn)
			conn.Close()
			replies <- is && err == nil
		}(pool)
	}
	count := 0
	for range m {
		if <-replies {
			count++
		}
	}
	return count
}

func (m manager) acquire(name string) (string, error) {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	value := base64.StdEncoding.EncodeToString(random)
	start := time.Now()
	count := m.onAll(func(conn redis.Conn) (bool, error) {
		reply, err := redis.String(conn.Do("SET", name, value, "NX", "PX",
			int(tally.TTL/time.Millisecond)))
		return reply == "OK", err
	})
	drift := time.Duration(float64(tally.TTL) * driftFactor)
	if count > len(m)/2 && time.Since(start) < tally.TTL-drift {
		return value, nil
	}
	_ = m.release(name, value)
	return "", errHeld
}

func (m manager) release(name, value string) error {
	count := m.onAll(func(conn redis.Conn) (bool, error) {
		status, err := redis.Int(delete.Do(conn, name, value))
		return status != 0, err
	})
	if count <= len(m)/2 {
		return errHeld
	}
	return nil
}

func main() {
	clients, during, nodes := tally.Arguments()
	m := newManager(clients, nodes)
	if m.onAll(func(conn redis.Conn) (bool, error) {
		_, err := conn.Do("PING")
		return true, err
	}) != len(nodes) {
		log.Fatal("a node does not answer")
	}
	tally.Run(clients, during, func(name string) error {
		value, err := m.acquire(name)
		if err != nil {
			return err
		}
		return m.release(name, value)
	})
}

// SPDX-License-Identifier: MIT

//go:build ignore

// Ships the orders that are not shipped yet. Start as many workers as you like, on
// any machines; SIGTERM ends a worker when it has finished its order.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	redlockd "github.com/redlockd/redlockd/api/clients/go"
)

var states = []string{"new", "picked", "packed", "shipped"}

// ask sends a request to the store, and returns the text of its answer.
func ask(ctx context.Context, method, path, body string, number int64) (string, error) {
	store := os.Getenv("STORE")
	if store == "" {
		store = "http://127.0.0.1:8090"
	}
	request, err := http.NewRequestWithContext(ctx, method, store+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("X-Fencing-Token", strconv.FormatInt(number, 10))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the store says %d: %s", answer.StatusCode, text)
	}
	return string(text), err
}

// ship does what is left to do of an order. The context ends when the lock is lost.
func ship(ctx context.Context, lock *redlockd.Lock, order string) error {
	// the list may be stale: another worker may have shipped the order meanwhile
	done, err := ask(ctx, "GET", "/orders/"+order, "", 0)
	if err != nil {
		return err
	}
	isDone := true
	for _, state := range states {
		if isDone {
			isDone = state != done
			continue
		}
		if err := lock.Check(); err != nil {
			return err
		}
		if _, err := ask(ctx, "PUT", "/orders/"+order, state, lock.FencingToken()); err != nil {
			return err
		}
		fmt.Println(order, state)
	}
	return nil
}

// round tries each order once that is not shipped.
func round(stop context.Context, locks *redlockd.Client, ttl time.Duration) error {
	list, err := ask(stop, "GET", "/orders/", "", 0)
	if err != nil {
		return err
	}
	for _, line := range strings.Split(strings.TrimSpace(list), "\n") {
		order, state, _ := strings.Cut(line, " ")
		if order == "" || state == states[len(states)-1] || stop.Err() != nil {
			continue
		}
		// not with stop: an order that was begun is finished
		err := locks.Do(context.Background(), redlockd.Options{
			Resources: []string{"order:" + order}, TTL: ttl, Wait: redlockd.NoWait,
		}, func(ctx context.Context, lock *redlockd.Lock) error {
			return ship(ctx, lock, order)
		})
		switch {
		case errors.Is(err, redlockd.ErrHeld): // another worker has the order
		case errors.Is(err, redlockd.ErrUnavailable):
			return err
		case err != nil:
			// the order stays in the list: the next holder of its lock continues
			fmt.Println(order, "given up:", err)
		}
	}
	return nil
}

func main() {
	ttl, err := time.ParseDuration(os.Getenv("LOCK_TTL_S") + "s")
	if err != nil {
		ttl = 10 * time.Second
	}
	locks, err := redlockd.New(redlockd.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	stop, done := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer done()
	for stop.Err() == nil {
		if err := round(stop, locks, ttl); err != nil {
			fmt.Println("store or lock service failed:", err)
		}
		select {
		case <-stop.Done():
		case <-time.After(time.Second):
		}
	}
}

// SPDX-License-Identifier: MIT

// holder works while it holds a lock, and tells when it did:
//
//	holder RESOURCE TTL_MS   until standard input ends; then it releases
//	holder RESOURCE TTL_MS cancel MS   ends the acquire after so many ms
//
// Each line has a moment on CLOCK_MONOTONIC, in ns. "step": a step that Check
// allowed; "ctx": one by work that looks only at its context.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	redlockd "github.com/redlockd/redlockd/api/clients/go"
)

const monotonic = 1

var output sync.Mutex

func now() int64 {
	var spec syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic,
		uintptr(unsafe.Pointer(&spec)), 0)
	return spec.Nano()
}

func say(what string, at int64, more ...any) {
	output.Lock()
	defer output.Unlock()
	fmt.Println(append([]any{what, at}, more...)...)
}

func ms(text string) time.Duration {
	number, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return time.Duration(number) * time.Millisecond
}

func main() {
	ctx := context.Background()
	options := redlockd.Options{Resources: []string{os.Args[1]}, TTL: ms(os.Args[2]),
		Owner: "holder"}
	client, err := redlockd.New(redlockd.Config{Timeout: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	if len(os.Args) > 3 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, ms(os.Args[4]))
		defer cancel()
	}
	lock, err := client.Acquire(ctx, options)
	if err != nil {
		say("not", now(), err)
		return
	}
	say("held", now(), lock.FencingToken())
	hold(lock)
	say("lost", now(), lock.Err() != nil, redlockd.Cause(lock.Context()))
	err = lock.Release(context.Background())
	say("released", now(), err)
}

// hold works until the lock is lost or standard input ends.
func hold(lock *redlockd.Lock) {
	ctx, cancel := context.WithCancel(lock.Context())
	var works sync.WaitGroup
	work := func(what string, mayGoOn func() bool) {
		defer works.Done()
		for {
			// before the question: however long the process is stopped in
			// between, a late moment is not told
			at := now()
			if ctx.Err() != nil || !mayGoOn() {
				return
			}
			say(what, at)
			time.Sleep(2 * time.Millisecond)
		}
	}
	works.Add(2)
	go work("step", func() bool { return lock.Check() == nil })
	go work("ctx", func() bool { return true })
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	works.Wait()
	cancel()
}

// SPDX-License-Identifier: MIT

// held holds many locks in one process, and counts those that are lost:
//
//	held LOCKS TTL_MS SECONDS URL…
//
// Prints what this process used, in µs of CPU time for each second.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"bench/tally"
	redlockd "github.com/redlockd/redlockd/api/clients/go"
)

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func hold(client *redlockd.Client, count int, ttl time.Duration) []*redlockd.Lock {
	locks := make([]*redlockd.Lock, count)
	var group sync.WaitGroup
	for n := range locks {
		group.Add(1)
		go func(n int) {
			defer group.Done()
			lock, err := client.Acquire(context.Background(), redlockd.Options{
				Resources: []string{fmt.Sprint("held:", n)}, TTL: ttl})
			if err != nil {
				log.Fatal(err)
			}
			locks[n] = lock
		}(n)
	}
	group.Wait()
	return locks
}

func main() {
	if len(os.Args) < 5 {
		log.Fatal("usage: ", os.Args[0], " LOCKS TTL_MS SECONDS URL…")
	}
	count, seconds := number(os.Args[1]), number(os.Args[3])
	client, err := redlockd.New(redlockd.Config{URLs: os.Args[4:]})
	if err != nil {
		log.Fatal(err)
	}
	locks := hold(client, count, time.Duration(number(os.Args[2]))*time.Millisecond)
	fmt.Println("held", count)
	before := tally.CPU()
	time.Sleep(time.Duration(seconds) * time.Second)
	used := tally.CPU() - before
	var lost int64
	var group sync.WaitGroup
	for _, lock := range locks {
		group.Add(1)
		go func(lock *redlockd.Lock) {
			defer group.Done()
			if lock.Check() != nil || lock.Release(context.Background()) != nil {
				atomic.AddInt64(&lost, 1)
			}
		}(lock)
	}
	group.Wait()
	fmt.Printf("locks %d lost %d cpu_us_per_s %.0f\n", count, lost,
		float64(used.Microseconds())/float64(seconds))
}

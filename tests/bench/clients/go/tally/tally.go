// SPDX-License-Identifier: MIT

// Package tally has what the programs of this folder share: cycles of acquire
// and release, counted as ../../load.c does. Each is called as
//
//	PROGRAM CLIENTS SECONDS WHERE…
package tally

import (
	"fmt"
	"log"
	"os"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// TTL of the locks.
const TTL = 30 * time.Second

const warmUp = 500 * time.Millisecond

// Arguments returns the number of clients, for how long, and where.
func Arguments() (int, time.Duration, []string) {
	if len(os.Args) < 4 {
		log.Fatal("usage: ", os.Args[0], " CLIENTS SECONDS WHERE…")
	}
	clients, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		log.Fatal(err)
	}
	return clients, time.Duration(seconds * float64(time.Second)), os.Args[3:]
}

// CPU is what this process has used.
func CPU() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		log.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// client is one of those that do cycles. Those that end from begin to end count.
type client struct {
	us               []int64
	cycles, failures int
}

func (c *client) run(number int, begin, end time.Time, cycle func(string) error) {
	for start := time.Now(); start.Before(end); {
		name := fmt.Sprintf("bench:%d:%d", number, c.cycles)
		if cycle(name) != nil {
			c.failures++
		}
		c.cycles++
		now := time.Now()
		if !now.Before(begin) && now.Before(end) {
			c.us = append(c.us, now.Sub(start).Microseconds())
		}
		start = now
	}
}

// Run does cycles of fresh names with so many clients, and prints what came of
// them, as sample_report in ../../../sample.c.
func Run(clients int, during time.Duration, cycle func(name string) error) {
	before := CPU()
	begin := time.Now().Add(warmUp)
	end := begin.Add(during)
	each := make([]client, clients)
	var group sync.WaitGroup
	for number := range each {
		group.Add(1)
		go func(number int) {
			defer group.Done()
			each[number].run(number, begin, end, cycle)
		}(number)
	}
	group.Wait()
	used := CPU() - before
	var all client
	for n := range each {
		all.us = append(all.us, each[n].us...)
		all.cycles += each[n].cycles
		all.failures += each[n].failures
	}
	sort.Slice(all.us, func(a, b int) bool { return all.us[a] < all.us[b] })
	fmt.Printf("cycles_per_s %.0f cycles %d failures %d p50_us %d p99_us %d "+
		"client_cpu_us %d\n", float64(len(all.us))/during.Seconds(), all.cycles,
		all.failures, all.percentile(50), all.percentile(99), used.Microseconds())
}

// percentile of what is sorted.
func (c *client) percentile(percent int) int64 {
	if rank := len(c.us) * percent / 100; rank < len(c.us) {
		return c.us[rank]
	}
	return 0
}

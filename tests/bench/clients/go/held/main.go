// held holds many locks in one process, and counts those that are lost:
//
//	held LOCKS SECONDS TTL_MS BUSY URL…
//
// BUSY processes meanwhile keep a core busy each. Prints what this process used,
// in µs of CPU time for each second.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"bench/tally"
	"redlockd.example/redlockd"
)

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// burn keeps a core busy until standard input ends, with this process's parent.
func burn() {
	go func() {
		for {
		}
	}()
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// burners are other processes: what they use is not ours.
func burners(count int) func() {
	var stops []func()
	for ; count > 0; count-- {
		child := exec.Command(os.Args[0], "burn")
		pipe, err := child.StdinPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			log.Fatal(err)
		}
		stops = append(stops, func() {
			pipe.Close()
			_ = child.Wait()
		})
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
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
	if len(os.Args) == 2 && os.Args[1] == "burn" {
		burn()
		return
	}
	if len(os.Args) < 6 {
		log.Fatal("usage: ", os.Args[0], " LOCKS SECONDS TTL_MS BUSY URL…")
	}
	count, seconds := number(os.Args[1]), number(os.Args[2])
	client, err := redlockd.New(redlockd.Config{URLs: os.Args[5:]})
	if err != nil {
		log.Fatal(err)
	}
	stop := burners(number(os.Args[4]))
	defer stop()
	locks := hold(client, count, time.Duration(number(os.Args[3]))*time.Millisecond)
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

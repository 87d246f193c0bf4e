// SPDX-License-Identifier: MIT

// redlockd: cycles with our package; goroutines share one client. PROFILE names
// a file for what pprof shows.
package main

import (
	"context"
	"log"
	"os"
	"runtime/pprof"

	"bench/tally"
	redlockd "github.com/redlockd/redlockd/api/clients/go"
)

func profile() func() {
	name := os.Getenv("PROFILE")
	if name == "" {
		return func() {}
	}
	file, err := os.Create(name)
	if err == nil {
		err = pprof.StartCPUProfile(file)
	}
	if err != nil {
		log.Fatal(err)
	}
	return pprof.StopCPUProfile
}

func main() {
	clients, during, urls := tally.Arguments()
	client, err := redlockd.New(redlockd.Config{URLs: urls})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer profile()()
	tally.Run(clients, during, func(name string) error {
		lock, err := client.Acquire(ctx, redlockd.Options{
			Resources: []string{name}, TTL: tally.TTL})
		if err != nil {
			return err
		}
		return lock.Release(ctx)
	})
}

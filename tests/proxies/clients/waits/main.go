// Waits for a lock until it is interrupted, and ends: URL, and options as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"time"

	"redlockd.example/redlockd"
)

func main() {
	var options redlockd.Options
	if err := json.Unmarshal([]byte(os.Args[2]), &options); err != nil {
		panic(err)
	}
	options.TTL = 4 * time.Second
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	client, err := redlockd.New(redlockd.Config{URLs: []string{os.Args[1]}})
	if err != nil {
		panic(err)
	}
	err = client.Do(ctx, options, func(context.Context, *redlockd.Lock) error {
		fmt.Println("granted")
		return nil
	})
	if err != nil {
		os.Exit(1)
	}
}

// URLS="http://a:8080 http://b:8080" lock RESOURCE TTL_MS WAIT_MS WORK_MS
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"
)

func ms(argument string) time.Duration {
	span, err := time.ParseDuration(argument + "ms")
	if err != nil {
		log.Fatal(err)
	}
	return span
}

func main() {
	lock := &Lock{URLs: strings.Fields(os.Getenv("URLS")), TTL: ms(os.Args[2]), Wait: ms(os.Args[3])}
	err := lock.Hold(context.Background(), os.Args[1], func(ctx context.Context, fence int64) error {
		for end := time.Now().Add(ms(os.Args[4])); time.Now().Before(end); {
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
			if lock.Left() <= 0 {
				return errors.New("lock lost")
			}
			fmt.Println("working", time.Now().UnixMilli(), fence)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}

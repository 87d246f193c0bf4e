// SPDX-License-Identifier: MIT

// Package redlockd has distributed locks from a redlockd server.
//
//	client, err := redlockd.New(redlockd.Config{})
//	…
//	err = client.Do(ctx, redlockd.Options{
//		Resources: []string{"order:42"},
//		TTL:       30 * time.Second,
//		Wait:      5 * time.Second,
//	}, func(ctx context.Context, lock *redlockd.Lock) error {
//		return ship(ctx, 42, lock.FencingToken())
//	})
//
// The lock is extended in the background. If it is lost, ctx ends.
package redlockd

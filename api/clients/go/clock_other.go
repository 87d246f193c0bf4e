// SPDX-License-Identifier: MIT

//go:build !linux

package redlockd

import "time"

// now stops while the machine sleeps: Go has no other clock here.
func now() instant { return instant(time.Since(began)) }

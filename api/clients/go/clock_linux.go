// SPDX-License-Identifier: MIT

package redlockd

import (
	"syscall"
	"time"
	"unsafe"
)

const clockBoottime = 7

// now runs on while the machine sleeps, as TTLs on the nodes do. Go's own
// monotonic clock does not.
func now() instant {
	var spec syscall.Timespec
	_, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime,
		uintptr(unsafe.Pointer(&spec)), 0)
	if failed != 0 {
		return instant(time.Since(began))
	}
	return instant(spec.Nano())
}

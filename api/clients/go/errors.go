// SPDX-License-Identifier: MIT

package redlockd

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// What an error of this package is, for errors.Is. The types below, for
// errors.As, tell more.
var (
	// ErrHeld: somebody else held the lock until the wait had passed.
	ErrHeld = errors.New("the lock is held")
	// ErrLost: the lock ended before its holder released it. What the holder
	// did since then may have overlapped with the work of the next holder.
	ErrLost = errors.New("the lock was lost")
	// ErrReleased: the lock has been released, and can do nothing more.
	ErrReleased = errors.New("the lock has been released")
	// ErrUnavailable: no server granted or refused what was asked.
	ErrUnavailable = errors.New("no server is available")
	// ErrRateLimited is an ErrUnavailable: you ask the servers too often.
	ErrRateLimited = errors.New("too many requests")
	// ErrRefused: the request is wrong, and would be wrong again.
	ErrRefused = errors.New("the request was refused")
	// ErrUnauthorized is an ErrRefused: the servers do not know you (401).
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden is an ErrRefused: the servers know you, but you may not do
	// this (403).
	ErrForbidden = errors.New("forbidden")
	// ErrUntrusted: no server has a certificate that you trust.
	ErrUntrusted = errors.New("no server is trusted")
)

// HeldError is an ErrHeld. Fields that are not known are zero.
type HeldError struct {
	Resources    []string
	Limit        int           // of the pool, if permits were asked for
	Owner        string        // of the holder
	FencingToken int64         // of the holder
	Remaining    time.Duration // until the holder's lock ends, if not extended
	Readers      int           // how many hold it together; 0: it is exclusive
}

func (e *HeldError) Error() string {
	name := strings.Join(e.Resources, ", ")
	switch {
	case e.Limit > 0:
		return fmt.Sprintf("%s: too few of %d permits are free", name, e.Limit)
	case e.Readers == 1:
		return name + ": the lock is held by a reader"
	case e.Readers > 1:
		return fmt.Sprintf("%s: the lock is held by %d readers", name, e.Readers)
	case e.Owner != "":
		return fmt.Sprintf("%s: the lock is held by %s", name, e.Owner)
	}
	return name + ": the lock is held by somebody else"
}

// Is makes it an ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// LostError is an ErrLost.
type LostError struct {
	Name   string // the resources
	Reason string
	Work   error // what the work of Do returned, if it returned an error
}

func (e *LostError) Error() string {
	if e.Work != nil {
		return fmt.Sprintf("%s: %s; the work ended with: %v",
			e.Name, e.Reason, e.Work)
	}
	return e.Name + ": " + e.Reason
}

// Is makes it an ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Unwrap returns the error of the work.
func (e *LostError) Unwrap() error { return e.Work }

// UnavailableError is an ErrUnavailable, and after a 429 an ErrRateLimited. If
// an answer was lost, the lock may be held until its TTL ends.
type UnavailableError struct {
	Name       string // the resources, or the request
	Reason     string
	Status     int           // of the last answer; 0: none
	RetryAfter time.Duration // as the last answer says; 0: it does not
}

func (e *UnavailableError) Error() string { return e.Name + ": " + e.Reason }

// Is makes it an ErrUnavailable, and after a 429 an ErrRateLimited.
func (e *UnavailableError) Is(target error) bool {
	return target == ErrUnavailable ||
		target == ErrRateLimited && e.Status == 429
}

// RefusedError is an ErrRefused, and with 401 an ErrUnauthorized, with 403 an
// ErrForbidden.
type RefusedError struct {
	Name   string // the resources, or the request
	Status int
	Code   string // stable, such as "invalid_request"; "": not from redlockd
	Detail string // if it is not from redlockd: from where, and its Content-Type
}

func (e *RefusedError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%s: %d %s", e.Name, e.Status, e.Detail))
}

// Is makes it an ErrRefused, an ErrUnauthorized or an ErrForbidden.
func (e *RefusedError) Is(target error) bool {
	return target == ErrRefused ||
		target == ErrUnauthorized && e.Status == 401 ||
		target == ErrForbidden && e.Status == 403
}

// UntrustedError is an ErrUntrusted: the certificate is not signed by a known
// CA, not for this name, or expired.
type UntrustedError struct {
	Name   string // the resources, or the request
	Detail string
}

func (e *UntrustedError) Error() string { return e.Name + ": " + e.Detail }

// Is makes it an ErrUntrusted.
func (e *UntrustedError) Is(target error) bool { return target == ErrUntrusted }

// SPDX-License-Identifier: MIT

// The job of README.md with the client for Go: job URL DEFAULT_TTL_MS NAME
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"

	client "generated/redlockd/client"
)

func expect(holds bool, what ...interface{}) {
	if !holds {
		log.Panic(what...)
	}
}

func done[T any](answer T, _ *http.Response, err error) T {
	expect(err == nil, err)
	return answer
}

func refused[T any](answer T, response *http.Response, err error) client.Problem {
	var failure *client.GenericOpenAPIError
	expect(errors.As(err, &failure), answer, err)
	problem, isProblem := failure.Model().(client.Problem)
	expect(isProblem && int(problem.Status) == response.StatusCode, err)
	return problem
}

func main() {
	ctx := context.Background()
	settings := client.NewConfiguration()
	settings.Servers = client.ServerConfigurations{{URL: os.Args[1]}}
	locks := client.NewAPIClient(settings).LocksAPI
	ttl, _ := strconv.ParseInt(os.Args[2], 10, 64)
	name := os.Args[3]
	acquire := func(wish client.AcquireRequest) client.ApiAcquireLockRequest {
		return locks.AcquireLock(ctx).AcquireRequest(wish)
	}
	release := func(grant *client.Grant) {
		gone := done(locks.ReleaseLock(ctx, grant.Id).XLockToken(grant.Token).Execute())
		expect(gone.Released, gone)
	}
	extend := func(grant *client.Grant) client.ApiExtendLockRequest {
		return locks.ExtendLock(ctx, grant.Id).XLockToken(grant.Token)
	}

	resource := "Straße/" + name
	wish := client.AcquireRequest{Resource: &resource}
	first := done(acquire(wish).Execute())
	expect(*first.Resource == resource && first.TtlMs == ttl, first)
	held := refused(acquire(wish).Execute())
	expect(held.Status == 409 && held.Code == "lock_held", held)
	expect(*held.HeldBy.FencingToken == first.FencingToken, held)
	seen := done(locks.GetLock(ctx, first.Id).Execute())
	expect(*seen.FencingToken == first.FencingToken, seen)
	longer := done(extend(first).Execute())
	expect(longer.Token == first.Token && longer.TtlMs == ttl, longer)
	long := int64(20001)
	wrong := refused(acquire(client.AcquireRequest{Resource: &resource, TtlMs: &long}).Execute())
	expect(wrong.Status == 400 && wrong.Errors[0].Pointer == "/ttl_ms", wrong)

	pool, limit, two, longest := "pool "+name, int64(3), int64(2), int64(20000)
	permits := done(acquire(client.AcquireRequest{Resource: &pool, Limit: &limit, Permits: &two, TtlMs: &longest}).Execute())
	expect(len(permits.Slots) == 2 && permits.TtlMs == 20000, permits)
	release(permits)

	report, shared := "report "+name, client.SHARED
	reader := client.AcquireRequest{Resource: &report, Mode: &shared}
	one, other := done(acquire(reader).Execute()), done(acquire(reader).Execute())
	expect(one.Mode == "shared" && one.Token != other.Token, one)
	release(one)
	release(other)

	another := "forced " + name
	forced := done(acquire(client.AcquireRequest{Resource: &another}).Execute())
	gone := done(locks.ReleaseLock(ctx, forced.Id).Force(strconv.FormatInt(forced.FencingToken, 10)).Execute())
	expect(gone.Released && gone.Nodes.Released >= 3, gone)
	ended := refused(extend(forced).Execute())
	expect(ended.Status == 404 && ended.Code == "lock_not_found", ended)

	madeUp := "1795221641865000." + strings.Repeat("8f1c27a5", 5)
	nobody, fresh := "nobody", "batch "+name
	items := done(locks.RunBatch(ctx).BatchRequest(client.BatchRequest{Operations: []client.BatchOperation{
		{Operation: client.EXTEND, Id: &first.Id, Token: &first.Token},
		{Operation: client.RELEASE, Id: &nobody, Token: &madeUp},
		{Operation: client.ACQUIRE, Resource: &fresh}}}).Execute()).Results
	expect(items[0].Status == 200 && items[0].Grant.Token == first.Token, items)
	expect(items[1].Status == 404 && items[1].Problem.Code == "lock_not_found", items)
	expect(items[2].Status == 201, items)
	release(items[2].Grant)

	release(first)
	ended = refused(extend(first).Execute())
	expect(ended.Status == 404 && ended.Code == "lock_not_found", ended)
}

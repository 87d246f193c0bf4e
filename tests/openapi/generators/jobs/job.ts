// SPDX-License-Identifier: MIT
// The job of README.md with the client for TypeScript: job.js URL DEFAULT_TTL_MS NAME
import {AcquireRequest, Configuration, Grant, LocksApi, LockMode, OperationKind, Problem, ProblemFromJSON, ResponseError}
    from "./index";

declare const process: {argv: string[], exitCode: number};
const [url, ttl, name] = process.argv.slice(2);
const locks = new LocksApi(new Configuration({basePath: url}));
const MADE_UP = "1795221641865000." + "8f1c27a5".repeat(5);

function expect(holds: boolean | undefined, what: unknown): void {
    if (!holds)
        throw new Error(JSON.stringify(what));
}

async function refused(status: number, code: string, call: Promise<unknown>): Promise<Problem> {
    const error = await call.then(() => null, e => e);
    expect(error instanceof ResponseError, "was not refused: " + error);
    const problem = ProblemFromJSON(await error.response.json());
    expect(error.response.status === status && problem.status === status, problem);
    expect(problem.code === code, problem);
    return problem;
}

const acquire = (resource: string, more: AcquireRequest = {}) =>
    locks.acquireLock({acquireRequest: {resource, ...more}});
const extend = (grant: Grant) => locks.extendLock({id: grant.id, xLockToken: grant.token});

async function release(grant: Grant): Promise<void> {
    const gone = await locks.releaseLock({id: grant.id, xLockToken: grant.token});
    expect(gone.released, gone);
}

async function main(): Promise<void> {
    const resource = "Straße/" + name;
    const first = await acquire(resource);
    expect(first.resource === resource && first.ttlMs === Number(ttl), first);
    const held = await refused(409, "lock_held", acquire(resource));
    expect(held.heldBy?.fencingToken === first.fencingToken, held);
    const seen = await locks.getLock({id: first.id});
    expect(seen.fencingToken === first.fencingToken, seen);
    const longer = await extend(first);
    expect(longer.token === first.token && longer.ttlMs === Number(ttl), longer);
    const wrong = await refused(400, "invalid_request", acquire(resource, {ttlMs: 20001}));
    expect(wrong.errors?.[0].pointer === "/ttl_ms", wrong);

    const permits = await acquire("pool " + name, {limit: 3, permits: 2, ttlMs: 20000});
    expect(permits.slots?.length === 2 && permits.ttlMs === 20000, permits);
    await release(permits);

    const one = await acquire("report " + name, {mode: LockMode.Shared});
    const other = await acquire("report " + name, {mode: LockMode.Shared});
    expect(one.mode === "shared" && one.token !== other.token, one);
    await release(one);
    await release(other);

    const forced = await acquire("forced " + name);
    const gone = await locks.releaseLock({id: forced.id, force: String(forced.fencingToken)});
    expect(gone.released && gone.nodes.released >= 3, gone);
    await refused(404, "lock_not_found", extend(forced));

    const {results} = await locks.runBatch({batchRequest: {operations: [
        {operation: OperationKind.Extend, id: first.id, token: first.token},
        {operation: OperationKind.Release, id: "nobody", token: MADE_UP},
        {operation: OperationKind.Acquire, resource: "batch " + name, ttlMs: 1000}]}});
    expect(results[0].status === 200 && results[0].grant?.token === first.token, results);
    expect(results[1].status === 404 && results[1].problem?.code === "lock_not_found", results);
    expect(results[2].status === 201 && results[2].grant?.ttlMs === 1000, results);

    await release(first);
    await refused(404, "lock_not_found", extend(first));
}

main().catch(e => {
    console.error(e);
    process.exitCode = 1;
});

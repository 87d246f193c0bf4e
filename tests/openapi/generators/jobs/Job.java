// SPDX-License-Identifier: MIT
// The job of README.md with the client for Java: Job URL DEFAULT_TTL_MS NAME
import client.*;
import client.api.LocksApi;
import client.model.*;
import java.util.List;
import java.util.concurrent.Callable;

public class Job {
    static final String MADE_UP = "1795221641865000." + "8f1c27a5".repeat(5);
    static final ApiClient connection = new ApiClient();

    static void expect(boolean holds, Object what) {
        if (!holds)
            throw new AssertionError(what);
    }

    static Problem refused(int status, String code, Callable<?> call) throws Exception {
        try {
            throw new AssertionError(call.call());
        } catch (ApiException e) {
            Problem problem = connection.getObjectMapper().readValue(e.getResponseBody(), Problem.class);
            expect(e.getCode() == status && problem.getStatus() == status, e);
            expect(problem.getCode().equals(code), problem);
            return problem;
        }
    }

    static AcquireRequest of(String resource) {
        return new AcquireRequest().resource(resource);
    }

    public static void main(String[] args) throws Exception {
        connection.updateBaseUri(args[0]);
        LocksApi locks = new LocksApi(connection);
        long ttl = Long.parseLong(args[1]);
        String resource = "Straße/" + args[2];

        Grant first = locks.acquireLock(of(resource), null);
        expect(first.getResource().equals(resource) && first.getTtlMs() == ttl, first);
        Problem held = refused(409, "lock_held", () -> locks.acquireLock(of(resource), null));
        expect(held.getHeldBy().getFencingToken().equals(first.getFencingToken()), held);
        Lock seen = locks.getLock(first.getId(), null, null);
        expect(seen.getFencingToken().equals(first.getFencingToken()), seen);
        Grant longer = locks.extendLock(first.getId(), first.getToken(), null);
        expect(longer.getToken().equals(first.getToken()) && longer.getTtlMs() == ttl, longer);
        Problem wrong = refused(400, "invalid_request", () -> locks.acquireLock(of(resource).ttlMs(20001L), null));
        expect(wrong.getErrors().get(0).getPointer().equals("/ttl_ms"), wrong);

        Grant permits = locks.acquireLock(of("pool " + args[2]).limit(3L).permits(2L).ttlMs(20000L), null);
        expect(permits.getSlots().size() == 2 && permits.getTtlMs() == 20000, permits);
        expect(locks.releaseLock(permits.getId(), permits.getToken(), null).getReleased(), permits);

        AcquireRequest reader = of("report " + args[2]).mode(LockMode.SHARED);
        Grant one = locks.acquireLock(reader, null), other = locks.acquireLock(reader, null);
        expect(one.getMode().equals("shared") && !one.getToken().equals(other.getToken()), one);
        for (Grant grant : List.of(one, other))
            locks.releaseLock(grant.getId(), grant.getToken(), null);

        Grant forced = locks.acquireLock(of("forced " + args[2]), null);
        Release gone = locks.releaseLock(forced.getId(), null, forced.getFencingToken().toString());
        expect(gone.getReleased() && gone.getNodes().getReleased() >= 3, gone);
        refused(404, "lock_not_found", () -> locks.extendLock(forced.getId(), forced.getToken(), null));

        List<BatchResult> items = locks.runBatch(new BatchRequest()
            .addOperationsItem(new BatchOperation().operation(OperationKind.EXTEND)
                .id(first.getId()).token(first.getToken()))
            .addOperationsItem(new BatchOperation().operation(OperationKind.RELEASE)
                .id("nobody").token(MADE_UP))
            .addOperationsItem(new BatchOperation().operation(OperationKind.ACQUIRE)
                .resource("batch " + args[2]).ttlMs(1000L))).getResults();
        expect(items.get(0).getStatus() == 200, items);
        expect(items.get(0).getGrant().getToken().equals(first.getToken()), items);
        expect(items.get(1).getProblem().getCode().equals("lock_not_found"), items);
        expect(items.get(2).getStatus() == 201 && items.get(2).getGrant().getTtlMs() == 1000, items);

        expect(locks.releaseLock(first.getId(), first.getToken(), null).getReleased(), first);
        refused(404, "lock_not_found", () -> locks.extendLock(first.getId(), first.getToken(), null));
    }
}

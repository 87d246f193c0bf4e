// SPDX-License-Identifier: MIT
package org.redlockd;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;

/**
 * Which operations of a client go when, and which go together: without I/O and without a clock, the
 * section "Coalescing" of docs/client-authors.md. One thread at a time calls it.
 *
 * <p>At most two short requests are under way, in two places. What is requested meanwhile is
 * collected, and leaves as soon as there is a place:
 * <pre>
 *   add → collected → a place → flight → landed → a response for each → left
 *             ↑                    │
 *             └─ refused as a batch
 * </pre>
 */
final class Coalescer {
    private static final int PLACES = 2;
    // a server takes 100 operations and 64 KiB
    private static final int MOST_OPERATIONS = 100;
    private static final int LONGEST = 48 * 1024;

    /** A request on its way; of a batch, one of several. */
    static final class Operation {
        final Step.Send send;
        final CompletableFuture<Answer> response = new CompletableFuture<>();
        private String item; // of a batch, as JSON
        private int size; // of the item, in bytes
        private Flight flight; // null: it has not left
        private boolean mustBeAlone; // a batch with it was refused
        private boolean isAbandoned; // nobody waits for its response

        Operation(Step.Send send) {
            this.send = send;
        }

        private String item() {
            if (item == null) {
                item = Json.write(send.item());
                size = item.getBytes(StandardCharsets.UTF_8).length + 1; // with a comma
            }
            return item;
        }

        private boolean fits(int sizeBefore) {
            item();
            return sizeBefore + size <= LONGEST;
        }

        private boolean isTriedOnceBesideOthers() {
            return Step.Send.ACQUIRE.equals(send.operation) && !mustBeAlone && fits(0);
        }
    }

    private enum Kind {
        /** It has one of the two places. */
        SHORT,
        /** The server waits for the lock, or there is no time to wait here. */
        BESIDE,
        /** It is no operation, or it is overdue. */
        UNCOUNTED
    }

    /** A request that is under way: an operation, or a batch of them. */
    static final class Flight {
        final List<Operation> operations;
        final boolean isBatch;
        private Kind kind;
        // for the caller:
        String url;
        double sentMs;
        volatile boolean isOverdue;
        volatile Background.Timer timer;
        private volatile Http.Exchange exchange;
        private volatile IOException ended; // null: it goes on
        private volatile boolean hasLanded;

        private Flight(Kind kind, List<Operation> operations, boolean isBatch) {
            this.kind = kind;
            this.operations = operations;
            this.isBatch = isBatch;
            operations.forEach(one -> one.flight = this);
        }

        boolean hasLanded() {
            return hasLanded;
        }

        void begin(Http.Exchange with) {
            exchange = with;
            if (ended != null) {
                with.end(ended);
            }
        }

        /** It lands with this failure, also if it has not begun yet. */
        void end(IOException why) {
            ended = why;
            Http.Exchange begun = exchange;
            if (begun != null) {
                begun.end(why);
            }
        }

        /** What is sent. */
        Step.Send send() {
            return isBatch ? Step.Send.batch(
                operations.stream().map(Operation::item).collect(Collectors.toList()),
                operations.stream().mapToDouble(one -> one.send.timeoutMs).max().orElseThrow())
                : operations.get(0).send;
        }

        /** What this response to the whole says about an operation. */
        private Answer answer(int number, Answer came) {
            if (isBatch && came.isRepeated && came.refusesBatch()) {
                return came.result(Map.of()); // the first one may have been carried out
            }
            if (!isBatch || came.status != 200) {
                return came;
            }
            Object results = came.body.get("results");
            if (!(results instanceof List) || ((List<?>) results).size() != operations.size()) {
                return came.result(Map.of());
            }
            Answer own = came.result(Json.object(((List<?>) results).get(number)));
            return came.isRepeated && own.status == 401 ? came.result(Map.of()) : own;
        }

        /** Nobody waits for it; but extends and releases of a batch are to be done all the same. */
        private boolean isDeserted() {
            return operations.stream().allMatch(one -> one.isAbandoned
                && (!isBatch || Step.Send.ACQUIRE.equals(one.send.operation)));
        }
    }

    private final Map<Kind, Integer> underWay = new HashMap<>();
    private final List<Operation> collected = new ArrayList<>();

    /** Those are requested at the same moment. Returns what leaves. */
    List<Flight> add(List<Operation> operations) {
        List<Flight> flights = new ArrayList<>();
        List<Operation> urgent = new ArrayList<>();
        for (Operation one : operations) {
            one.send.tryFirstIf(!isIdle());
            if (one.send.operation == null) {
                flights.add(leave(Kind.UNCOUNTED, List.of(one), false));
            } else if (one.send.isUrgent) {
                urgent.add(one);
            } else if (one.send.waitsMs() > 0) {
                flights.add(leave(Kind.BESIDE, List.of(one), false));
            } else {
                collected.add(one);
            }
        }
        while (!urgent.isEmpty()) {
            List<Operation> batch = takeBatch(urgent);
            flights.add(leave(Kind.BESIDE, batch, batch.size() > 1));
        }
        return fill(flights);
    }

    /** Nobody waits for its response any more. Returns whether it will not be sent. */
    boolean abandon(Operation operation) {
        operation.isAbandoned = true;
        return collected.remove(operation);
    }

    /** Of an operation that was abandoned: the flight, if nobody waits for it any more. */
    Flight deserted(Operation operation) {
        return operation.flight != null && operation.flight.isDeserted() ? operation.flight : null;
    }

    /**
     * What came of it, for each operation that has no response yet. Others are collected again, and
     * go alone. Its place is free after left().
     */
    Map<Operation, Answer> landed(Flight flight, Answer came) {
        Map<Operation, Answer> answers = new LinkedHashMap<>();
        if (flight.hasLanded) {
            return answers;
        }
        flight.hasLanded = true;
        List<Operation> again = new ArrayList<>();
        for (int i = 0; i < flight.operations.size(); i++) {
            Operation one = flight.operations.get(i);
            Answer answer = flight.answer(i, came);
            if (one.response.isDone()) {
                continue; // its own time was up
            }
            // alone, it may be sent with a newer access token
            boolean isAlone = !came.isRepeated
                && (came.refusesBatch() || came.status == 200 && answer.status == 401);
            if (flight.isBatch && isAlone && !one.isAbandoned) {
                one.mustBeAlone = true;
                one.flight = null;
                again.add(one);
            } else {
                answers.put(one, answer);
            }
        }
        collected.addAll(0, again);
        return answers;
    }

    /** The next ones leave. */
    List<Flight> left(Flight flight) {
        if (flight.kind != Kind.UNCOUNTED) {
            underWay.merge(flight.kind, -1, Integer::sum);
            flight.kind = Kind.UNCOUNTED;
        }
        return fill(new ArrayList<>());
    }

    int collected() {
        return collected.size();
    }

    private int count(Kind kind) {
        return underWay.getOrDefault(kind, 0);
    }

    private boolean isIdle() {
        return count(Kind.SHORT) + count(Kind.BESIDE) == 0 && collected.isEmpty();
    }

    private Flight leave(Kind kind, List<Operation> operations, boolean isBatch) {
        if (kind != Kind.UNCOUNTED) {
            underWay.merge(kind, 1, Integer::sum);
        }
        return new Flight(kind, operations, isBatch);
    }

    /** Gives the free places to what was collected. */
    private List<Flight> fill(List<Flight> flights) {
        while (count(Kind.SHORT) < PLACES && !collected.isEmpty()) {
            boolean isBesideOthers = count(Kind.SHORT) + count(Kind.BESIDE) > 0;
            List<Operation> batch = takeBatch(collected);
            flights.add(leave(Kind.SHORT, batch, batch.size() > 1
                || isBesideOthers && batch.get(0).isTriedOnceBesideOthers()));
        }
        return flights;
    }

    /** Takes the first out, and what can go with it. What clashes stays, in its order. */
    private static List<Operation> takeBatch(List<Operation> from) {
        if (from.size() == 1) {
            return List.of(from.remove(0));
        }
        Load load = new Load();
        List<Operation> stay = new ArrayList<>();
        for (int i = 0; i < from.size(); i++) {
            if (load.isFull) {
                stay.addAll(from.subList(i, from.size()));
                break;
            }
            if (!load.takes(from.get(i))) {
                stay.add(from.get(i));
            }
        }
        from.clear();
        from.addAll(stay);
        return load.operations;
    }

    /** A batch that is put together. */
    private static final class Load {
        final List<Operation> operations = new ArrayList<>();
        boolean isFull;
        private final Map<String, Step.Claim> claims = new HashMap<>();
        private final Set<String> tokens = new HashSet<>();
        private int size;

        boolean takes(Operation one) {
            Step.Send send = one.send;
            boolean isFirst = operations.isEmpty();
            if (!isFirst && (one.mustBeAlone || tokens.contains(send.token())
                    || send.resources.stream().anyMatch(name -> clashes(name, send.claim)))) {
                return false;
            }
            if (!one.fits(size) && !isFirst) {
                isFull = true;
                return false;
            }
            send.resources.forEach(name -> claims.put(name, send.claim));
            if (send.token() != null) {
                tokens.add(send.token());
            }
            size += one.size;
            operations.add(one);
            isFull = one.mustBeAlone || operations.size() == MOST_OPERATIONS;
            return true;
        }

        private boolean clashes(String resource, Step.Claim claim) {
            Step.Claim other = claims.get(resource);
            return other != null && (claim == Step.Claim.EXCLUSIVE || other != claim);
        }
    }
}

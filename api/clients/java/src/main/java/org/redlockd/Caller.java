// SPDX-License-Identifier: MIT
package org.redlockd;

import java.io.IOException;
import java.net.http.HttpTimeoutException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/**
 * Carries out the talks of a client: its operations go as Coalescer says. Threads may share it. It
 * has no thread of its own: whoever submits an operation, or gets a response, sends what leaves
 * then, and waits for nothing.
 */
final class Caller implements Step.Performer {
    /**
     * A request that has no response so long after it should have one marks its replica: others ask
     * another one meanwhile. Another time for tests.
     */
    static volatile double overdueMs = 500;
    private static final double LATER_MS = 1; // than the timeout of HttpClient, which knows more

    private final Replicas replicas;
    private final Http http;
    private final Log log;
    private final Coalescer coalescer = new Coalescer(); // with the mutex
    private final List<Coalescer.Operation> soon = new ArrayList<>(); // with the mutex
    private final ReentrantLock mutex = new ReentrantLock();

    Caller(Replicas replicas, Talk talk, Http http, Log log) {
        this.replicas = replicas;
        this.http = http;
        this.log = log;
        replicas.probe = url -> Background.work(() -> {
            try {
                talk.probe(url, this);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // nobody does that to a worker
            }
        });
    }

    @Override public Answer perform(Step step) throws InterruptedException {
        if (step instanceof Step.Pause) {
            Clock.sleepUntil(Clock.nowMs() + ((Step.Pause) step).ms);
            return null;
        }
        Coalescer.Operation operation = new Coalescer.Operation((Step.Send) step);
        launch(locked(() -> coalescer.add(List.of(operation))));
        try {
            return operation.response.get();
        } catch (ExecutionException e) {
            throw new IllegalStateException(e); // it always is an Answer
        } catch (InterruptedException e) {
            abandon(operation);
            throw e;
        }
    }

    /**
     * Sends it together with others that the thread of the timers requests now, such as renewals
     * that are due.
     */
    void performSoon(Coalescer.Operation operation) {
        if (locked(() -> soon.add(operation) && soon.size() == 1)) {
            // after what is due by now
            Background.at(Clock.nowMs(), () -> launch(locked(() -> {
                List<Coalescer.Operation> all = List.copyOf(soon);
                soon.clear();
                return coalescer.add(all);
            })));
        }
    }

    /** If it was collected, it is not sent any more: nobody needs its response. */
    void takeOut(Coalescer.Operation operation) {
        locked(() -> soon.remove(operation) || coalescer.abandon(operation));
    }

    /** How many operations are collected. */
    int collected() {
        return locked(coalescer::collected);
    }

    private void abandon(Coalescer.Operation operation) {
        Coalescer.Flight deserted = locked(() -> {
            operation.send.isUnsent = coalescer.abandon(operation);
            operation.send.later = operation.send.isUnsent ? null : operation.response;
            return coalescer.deserted(operation);
        });
        if (deserted != null) {
            deserted.end(new IOException("interrupted"));
        }
    }

    private <T> T locked(Supplier<T> action) {
        mutex.lock();
        try {
            return action.get();
        } finally {
            mutex.unlock();
        }
    }

    private void launch(List<Coalescer.Flight> flights) {
        for (Coalescer.Flight one : flights) {
            try {
                begin(one);
            } catch (RuntimeException | Error e) { // as without memory for a thread
                land(one, Answer.failure(Answer.LOST, e.toString(), "", Clock.nowMs()));
            }
        }
    }

    private void begin(Coalescer.Flight flight) {
        Step.Send send = flight.send();
        flight.url = send.url == null ? replicas.choose() : send.url;
        flight.sentMs = Clock.nowMs();
        Http.Exchange exchange = http.new Exchange(send, flight.url, flight.sentMs);
        flight.begin(exchange);
        flight.timer = Background.at(nextLookMs(flight), () -> look(flight));
        exchange.begin().thenAccept(came -> land(flight, came));
    }

    private void land(Coalescer.Flight flight, Answer came) {
        if (flight.timer != null) {
            flight.timer.cancel();
        }
        Map<Coalescer.Operation, Answer> answers = locked(() -> coalescer.landed(flight, came));
        if (!flight.isOverdue && answers.values().stream().anyMatch(Answer::isGood)) {
            replicas.works(flight.url);
        }
        answers.forEach((operation, answer) -> operation.response.complete(answer));
        if (flight.isBatch) {
            Thread.yield(); // what their threads request next goes along
        }
        launch(locked(() -> coalescer.left(flight)));
        if (flight.isBatch && came.refusesBatch()) {
            log.warning("POST /batch: each operation goes alone (" + Replicas.shown(flight.url)
                + ": " + came + ")");
        }
    }

    // ---- what takes too long -------------------------------------------------------------------

    private static double overdueAtMs(Coalescer.Flight flight) {
        return flight.sentMs + flight.operations.get(0).send.waitsMs() + overdueMs;
    }

    private static double lateAtMs(Coalescer.Flight flight, Coalescer.Operation operation) {
        return flight.sentMs + operation.send.waitsMs() + operation.send.timeoutMs + LATER_MS;
    }

    private static double nextLookMs(Coalescer.Flight flight) {
        double nextMs = flight.operations.stream().filter(one -> !one.response.isDone())
            .mapToDouble(one -> lateAtMs(flight, one)).min().orElse(Double.POSITIVE_INFINITY);
        return flight.isOverdue ? nextMs : Math.min(nextMs, overdueAtMs(flight));
    }

    /** At that moment, in the thread of the timers. */
    private void look(Coalescer.Flight flight) {
        if (flight.hasLanded()) {
            return;
        }
        double nowMs = Clock.nowMs();
        if (!flight.isOverdue && nowMs >= overdueAtMs(flight)) {
            flight.isOverdue = true;
            replicas.avoid(flight.url);
            launch(locked(() -> coalescer.left(flight)));
        }
        HttpTimeoutException late = new HttpTimeoutException("request timed out");
        flight.operations.stream().filter(one -> nowMs >= lateAtMs(flight, one)).forEach(
            one -> one.response.complete(Answer.failure(Answer.LOST, late.getMessage(),
                flight.url, flight.sentMs)));
        if (flight.operations.stream().allMatch(one -> one.response.isDone())) {
            flight.end(late);
        } else {
            flight.timer = Background.at(nextLookMs(flight), () -> look(flight));
        }
    }
}

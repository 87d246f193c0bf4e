<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Internal;

use Psr\Log\LoggerInterface;
use Redlockd\Exception\Forbidden;
use Redlockd\Exception\LockHeld;
use Redlockd\Exception\LockLost;
use Redlockd\Exception\RateLimited;
use Redlockd\Exception\RedlockdException;
use Redlockd\Exception\RequestRefused;
use Redlockd\Exception\Unauthorized;
use Redlockd\Exception\Unavailable;
use Redlockd\Exception\Untrusted;

/**
 * What is asked of redlockd, and when, without I/O: the rules of
 * docs/client-authors.md.
 *
 * Each talk is a generator. It yields what to do next, a Send or a Pause. The
 * caller sends the Answer to a Send back into it, and null after a Pause. It
 * returns when it is done, or throws.
 *
 * @phpstan-type Steps \Generator<int, Send|Pause, Answer|null, mixed>
 */
final class Talk
{
    private const BACKOFF_FIRST_MS = 50.0;
    private const BACKOFF_LAST_MS = 2000.0;
    // a response to a watch that reports nothing new should take its time
    private const POLL_MS = 1000.0;

    public function __construct(
        private readonly Replicas $replicas,
        private readonly float $timeoutMs,
        private readonly ?LoggerInterface $logger = null,
    ) {
    }

    // ---- one's own lock ----------------------------------------------------------

    /**
     * Asks until the lock is held or the time is up. Returns the Grant.
     *
     * @return \Generator<int, Send|Pause, Answer|null, Grant>
     */
    public function acquire(Wanted $wanted, Attempt $attempt): \Generator
    {
        $deadline = $wanted->waitMs === null ? INF : Clock::nowMs() + $wanted->waitMs;
        $failures = $denials = 0;
        while (true) {
            $answer = self::answer(yield $attempt->ask($this->timeoutMs, $deadline - Clock::nowMs()));
            $grant = Grant::read($answer);
            if ($grant !== null && $grant->workUntilMs > Clock::nowMs()) {
                return $grant;
            }
            $attempt->mayBeGranted = $attempt->mayBeGranted || !$answer->grantsNothing();
            $attempt->isOpen = false;
            $leftMs = $deadline - Clock::nowMs();
            $denials = $answer->isDenial() ? $denials + 1 : 0;
            if ($answer->isHeld()) {
                if ($leftMs <= 0) {
                    throw $attempt->ended(self::held($wanted, $answer));
                }
                if (empty($answer->body['waited_ms'])) { // it did not wait
                    $delayMs = $answer->retryAfterMs() ?: self::backoffMs(0, null);
                    yield new Pause(min($delayMs, $leftMs));
                }
                continue;
            }
            if ($answer->isDenial()) {
                $this->replicas->avoid($answer->url);
                if ($denials >= $this->replicas->count()) {
                    throw $attempt->ended(self::denial($wanted->name, $answer));
                }
                continue;
            }
            if ($answer->isFinal()) {
                throw $attempt->ended(self::refusal($wanted->name, $answer));
            }
            $failures++;
            $why = self::why($answer);
            // each replica once, and one of them again
            if ($leftMs <= 0 && $failures > $this->replicas->count()) {
                throw $attempt->ended(self::unavailable("$wanted->name: no server grants it", $answer, $why));
            }
            $this->replicas->avoid($answer->url);
            $level = $failures === 1 ? 'warning' : 'info';
            $this->logger?->$level("$wanted->name: not acquired yet, trying again ($why)");
            yield new Pause(min($this->pauseMs($failures, $answer), max($leftMs, 0.0)));
        }
    }

    /**
     * Of an acquire that was given up: releases what it may have been granted.
     *
     * @return \Generator<int, Send|Pause, Answer|null, void>
     */
    public function giveBack(Wanted $wanted, Attempt $attempt): \Generator
    {
        $wasLost = false;
        $count = $this->replicas->count();
        for ($failures = 0; $failures <= $count;) {
            $answer = self::answer(yield $attempt->askAgain($this->timeoutMs));
            $grant = Grant::read($answer);
            if ($grant !== null) {
                try {
                    yield from $this->release(new Hold($wanted->name, $grant));
                    return;
                } catch (LockLost) {
                    // the request that was given up may have come later than this
                    // one, and have taken its place
                    if ($wasLost) {
                        return;
                    }
                }
                $wasLost = true;
                continue;
            }
            if ($answer->isFinal() && !$answer->isDenial()) {
                return; // others hold it: nothing was granted
            }
            $this->replicas->avoid($answer->url);
            $failures++;
            if ($failures <= $count) {
                yield new Pause(self::backoffMs($failures, null));
            }
        }
        $this->logger?->warning("$wanted->name: cancelled, and not released: it may be held until its TTL ends");
    }

    /**
     * Returns whether the lock was extended; false: it cannot be, and expires.
     * Throws LockLost if it is lost. $ttlMs: not a renewal, but asked for: servers
     * may refuse that, which throws. Renewals then have this TTL, too.
     *
     * @return \Generator<int, Send|Pause, Answer|null, bool>
     */
    public function extend(Hold $hold, ?int $ttlMs = null): \Generator
    {
        $failures = $refusals = 0;
        while (true) {
            $leftMs = $hold->remainingMs();
            if ($leftMs <= 0) {
                throw $hold->ended($hold->late()->getMessage());
            }
            $body = ['ttl_ms' => $ttlMs ?? $hold->grant->ttlMs];
            // asked with either token, a server finds the lock in either mode
            $wantedShared = $hold->wantsShared;
            if ($wantedShared) {
                $body['mode'] = 'shared';
            }
            // Connection and response together take at most half of what is left:
            // so another replica can be asked.
            $answer = self::answer(yield new Send(
                'PUT',
                "/locks/{$hold->grant->id}/extend",
                ['X-Lock-Token' => $hold->grant->token],
                $body,
                min($this->timeoutMs, $leftMs / 4),
            ));
            $grant = Grant::read($answer);
            if ($grant !== null) {
                $hold->extended($grant);
                return true;
            }
            if ($wantedShared !== $hold->wantsShared) {
                continue; // the token may have changed meanwhile
            }
            if ($answer->isEnded()) {
                throw $hold->ended("$hold->name: the lock ended ({$answer->text()})");
            }
            if ($answer->code === Answer::MAX_HOLD) {
                $this->logger?->warning("$hold->name: no longer extended ({$answer->text()})");
                if ($ttlMs !== null) {
                    throw self::refusal($hold->name, $answer);
                }
                return false;
            }
            if ($ttlMs !== null && $answer->isFinal() && !($answer->isRepeated && $hold->isDowngrading())) {
                $refusals++;
                if ($refusals === $failures + 1 && $refusals >= $this->replicas->count()) {
                    throw self::refusal($hold->name, $answer);
                }
            }
            $failures++;
            $this->replicas->avoid($answer->url);
            $this->logger?->warning("$hold->name: not extended yet (" . self::why($answer) . ')');
            yield new Pause(min($this->pauseMs($failures, $answer), $hold->remainingMs() / 4));
        }
    }

    /**
     * Makes an exclusive lock a shared one. If this is interrupted, the next
     * renewal does it.
     *
     * @return \Generator<int, Send|Pause, Answer|null, void>
     */
    public function downgrade(Hold $hold): \Generator
    {
        if ($hold->grant->isShared) {
            return;
        }
        $hold->wantsShared = true;
        try {
            yield from $this->extend($hold, $hold->grant->ttlMs);
        } catch (RequestRefused $refused) {
            if ($refused->errorCode !== Answer::MAX_HOLD) {
                $hold->wantsShared = false; // no server has begun it
            }
            throw $refused;
        }
    }

    /**
     * Throws LockLost if the lock had ended. If no server answers, that is only
     * logged: the lock expires, and other clients wait for that long.
     *
     * @param bool $mayBeDone by a request that was interrupted
     * @return \Generator<int, Send|Pause, Answer|null, void>
     */
    public function release(Hold $hold, bool $mayBeDone = false): \Generator
    {
        $hold->isReleased = true;
        for ($failures = 1;; $failures++) {
            $answer = self::answer(yield new Send(
                'DELETE',
                "/locks/{$hold->grant->id}",
                ['X-Lock-Token' => $hold->grant->token],
                null,
                $this->timeoutMs,
            ));
            if ($answer->status === 200) {
                return;
            }
            if ($answer->isEnded()) {
                if ($mayBeDone || $answer->isRepeated) {
                    return; // that may have been our own release
                }
                $hold->isDone = true;
                throw $hold->ended("$hold->name: the lock had ended ({$answer->text()})");
            }
            if (!$answer->isDenial() && !$answer->isLimit() && $answer->code !== Answer::UNSENT) {
                $mayBeDone = true;
            }
            $mayBeDone = $mayBeDone || $answer->isRepeated;
            $this->replicas->avoid($answer->url);
            if ($hold->validityMs() <= 0 || $failures > $this->replicas->count()) {
                break;
            }
            $pauseMs = $this->pauseMs($failures, $answer->isLimit() ? $answer : null);
            yield new Pause(min($pauseMs, $hold->validityMs()));
        }
        $seconds = sprintf('%.1f', $hold->validityMs() / 1000);
        $this->logger?->warning("$hold->name: not released; it expires in $seconds s ({$answer->text()})");
    }

    // ---- any lock ----------------------------------------------------------------

    /**
     * Asks each replica once, and one of them again, until one returns something
     * else than a failure of its own: an object with this member, or a problem.
     *
     * @return \Generator<int, Send|Pause, Answer|null, Answer>
     */
    public function ask(string $method, string $path, string $member): \Generator
    {
        $what = "$method $path";
        $failures = $denials = 0;
        while (true) {
            $answer = self::answer(yield new Send($method, $path, [], null, $this->timeoutMs));
            $denials = $answer->isDenial() ? $denials + 1 : 0;
            if ($denials >= $this->replicas->count()) {
                throw self::denial($what, $answer);
            }
            if (!$denials && ($answer->isFinal() || $answer->has($member))) {
                return $answer;
            }
            $failures++;
            $this->replicas->avoid($answer->url);
            if ($failures > $this->replicas->count()) {
                throw self::unavailable($what, $answer, self::why($answer));
            }
            if (!$denials) {
                yield new Pause(self::backoffMs(0, null));
            }
        }
    }

    /**
     * The body of a good response.
     *
     * @return \Generator<int, Send|Pause, Answer|null, array<string, mixed>>
     */
    public function get(string $what, string $path, string $member): \Generator
    {
        $answer = yield from $this->ask('GET', $path, $member);
        if ($answer->status !== 200) {
            throw self::refusal($what, $answer);
        }
        return $answer->body;
    }

    /**
     * The lock as GET /locks/<id> describes it; null: nobody holds it.
     *
     * @return \Generator<int, Send|Pause, Answer|null, array<string, mixed>|null>
     */
    public function holder(string $resource): \Generator
    {
        $body = yield from $this->get($resource, '/locks/' . self::id($resource), 'held');
        return $body['held'] ? $body : null;
    }

    /**
     * Waits until the lock has another version than $version; '': none is known.
     * Goes on while servers fail. Returns the lock as GET /locks/<id> describes it,
     * held or not.
     *
     * @return \Generator<int, Send|Pause, Answer|null, array<string, mixed>>
     */
    public function nextHolder(string $resource, string $version): \Generator
    {
        $path = '/locks/' . self::id($resource);
        $waits = $version !== '';
        $failures = $denials = 0;
        while (true) {
            $query = $waits ? "?after=$version&wait_ms=" . Attempt::LONGEST_WAIT_MS : '';
            $answer = self::answer(yield new Send(
                'GET',
                $path . $query,
                [],
                null,
                $this->timeoutMs,
                $waits ? Attempt::LONGEST_WAIT_MS : 0,
            ));
            $denials = $answer->isDenial() ? $denials + 1 : 0;
            if ($denials) {
                $this->replicas->avoid($answer->url);
                if ($denials >= $this->replicas->count()) {
                    throw self::denial($resource, $answer);
                }
            } elseif ($answer->has('version')) {
                $failures = 0;
                $waits = $version !== '';
                if ($answer->body['version'] !== $version) {
                    return $answer->body;
                }
                yield new Pause(max(0.0, $answer->sentMs + self::POLL_MS - Clock::nowMs()));
            } elseif ($answer->isFinal()) {
                throw self::refusal($resource, $answer);
            } else {
                $failures++;
                $this->replicas->avoid($answer->url);
                // a server that does not wait, as it stops, may still answer
                $waits = false;
                yield new Pause($this->pauseMs($failures, $answer));
            }
        }
    }

    /**
     * Returns whether there was something to release.
     *
     * @param int|string $fencingToken 'all': the locks of all readers
     * @return \Generator<int, Send|Pause, Answer|null, bool>
     */
    public function force(string $id, int|string $fencingToken): \Generator
    {
        $path = '/locks/' . str_replace('%7E', '~', rawurlencode($id)) . "?force=$fencingToken";
        $answer = yield from $this->ask('DELETE', $path, 'released');
        if ($answer->isEnded()) {
            return false;
        }
        if ($answer->status !== 200) {
            throw self::refusal($id, $answer);
        }
        return true;
    }

    /**
     * Whether a replica that failed is back.
     *
     * @return \Generator<int, Send|Pause, Answer|null, void>
     */
    public function probe(string $url): \Generator
    {
        $answer = self::answer(yield new Send('GET', '/readyz', [], null, 1000.0, 0.0, $url));
        $this->replicas->probed($url, $answer->status >= 200 && $answer->status < 500 && !$answer->isLimit());
    }

    /** As the servers make it: any proxy passes it on unchanged. */
    public static function id(string $resource): string
    {
        if (preg_match('/^[A-Za-z0-9._:-]+$/D', $resource) && $resource !== '.' && $resource !== '..') {
            return $resource;
        }
        return '~' . rtrim(strtr(base64_encode($resource), '+/', '-_'), '=');
    }

    // ---- pauses and errors -------------------------------------------------------

    private static function answer(?Answer $answer): Answer
    {
        return $answer ?? throw new \LogicException('a request without a response');
    }

    /** Random, so that clients that failed together do not try again together. */
    private static function backoffMs(int $failures, ?Answer $answer): float
    {
        $longestMs = min(self::BACKOFF_LAST_MS, self::BACKOFF_FIRST_MS * 2 ** min($failures, 10));
        return max(Clock::betweenMs($longestMs / 2, $longestMs), $answer?->retryAfterMs() ?? 0.0);
    }

    /**
     * Another replica, which is asked next, need not be busy: what this one asks
     * for counts only once each has failed.
     */
    private function pauseMs(int $failures, ?Answer $answer): float
    {
        return self::backoffMs($failures, $failures % $this->replicas->count() === 0 ? $answer : null);
    }

    private static function why(Answer $answer): string
    {
        return Replicas::shown($answer->url) . ': ' . $answer->text();
    }

    /** A refusal that is not from redlockd says where it is from. */
    private static function refused(string $what, Answer $answer): string
    {
        $from = $answer->isFromElsewhere()
            ? ' (from ' . Replicas::shown($answer->url) . ')'
            : '';
        return "$what: " . $answer->text() . $from;
    }

    private static function denial(string $what, Answer $answer): RedlockdException
    {
        $text = self::refused($what, $answer);
        return match ($answer->status) {
            401 => new Unauthorized($text, 401, $answer->code),
            403 => new Forbidden($text, 403, $answer->code),
            default => new Untrusted($text),
        };
    }

    private static function refusal(string $what, Answer $answer): RedlockdException
    {
        return $answer->isDenial()
            ? self::denial($what, $answer)
            : new RequestRefused(self::refused($what, $answer), $answer->status, $answer->code);
    }

    private static function unavailable(string $what, Answer $answer, string $why): Unavailable
    {
        $text = "$what ($why)";
        return $answer->isLimit()
            ? new RateLimited($text, (int) $answer->retryAfterMs())
            : new Unavailable($text);
    }

    private static function held(Wanted $wanted, Answer $answer): LockHeld
    {
        if ($wanted->limit !== null) {
            return new LockHeld("$wanted->name: not enough of its $wanted->limit permits are free");
        }
        $of = is_array($answer->body['held_by'] ?? null) ? $answer->body['held_by'] : [];
        $readers = $of['readers'] ?? 0;
        $by = $of['owner'] ?? 'somebody else';
        if ($readers) {
            $by = $readers === 1 ? 'a reader' : "$readers readers";
        }
        return new LockHeld(
            "$wanted->name: the lock is held by $by",
            $of['owner'] ?? null,
            $of['fencing_token'] ?? null,
            $of['readers'] ?? null,
            $of['remaining_ms'] ?? null,
        );
    }
}

<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

// Plays one of the transcripts of tests/protocol without I/O; docs/client-authors.md
// says what is in them.

use Redlockd\Exception\Forbidden;
use Redlockd\Exception\LockHeld;
use Redlockd\Exception\LockLost;
use Redlockd\Exception\RateLimited;
use Redlockd\Exception\RequestRefused;
use Redlockd\Exception\Unauthorized;
use Redlockd\Exception\Unavailable;
use Redlockd\Exception\Untrusted;
use Redlockd\HeldLock;
use Redlockd\Internal\Answer;
use Redlockd\Internal\Attempt;
use Redlockd\Internal\Clock;
use Redlockd\Internal\Grant;
use Redlockd\Internal\Hold;
use Redlockd\Internal\Pause;
use Redlockd\Internal\Replicas;
use Redlockd\Internal\Send;
use Redlockd\Internal\Talk;
use Redlockd\Internal\Wanted;

function expect(bool $isIt, string $what): void
{
    if (!$isIt) {
        throw new RuntimeException($what);
    }
}

/** A talk, and what it wants now. */
final class Running
{
    public Send|Pause|null $now = null;
    public mixed $result = null;
    public ?Throwable $error = null;
    public bool $isOver = false; // and the transcript knows
    /** @var array<string, mixed> */
    public array $asked = [];
    public string $url = '';
    public float $sentMs = 0.0;

    public function __construct(private readonly Generator $talk)
    {
        $this->proceed(static fn () => $talk->current());
    }

    public function send(?Answer $answer): void
    {
        $this->proceed(fn () => $this->talk->send($answer));
    }

    private function proceed(Closure $step): void
    {
        $this->now = null;
        try {
            $step();
            if ($this->talk->valid()) {
                $this->now = $this->talk->current();
            } else {
                $this->result = $this->talk->getReturn();
            }
        } catch (Throwable $error) { // which the transcript names
            $this->error = $error;
        }
    }
}

final class Player
{
    // what a step may have beside its first word
    private const STEPS = [
        'send' => 'of server headers body timeout_ms wait_ms', 'again' => 'of timeout_ms',
        'answer' => 'of after_ms body grant text retry_after overdue', 'pause_ms' => 'of',
        'end' => '*', 'hold' => '', 'leave' => 'of', 'cancel' => 'gives_back', 'pass_ms' => '',
        'choose' => 'probes', 'failed' => '', 'worked' => '', 'probed' => 'works',
    ];
    // the first that fits: some are subclasses of others
    private const ERRORS = [
        'held' => LockHeld::class, 'lost' => LockLost::class, 'rate_limited' => RateLimited::class,
        'unavailable' => Unavailable::class, 'untrusted' => Untrusted::class,
        'unauthorized' => Unauthorized::class, 'forbidden' => Forbidden::class,
        'refused' => RequestRefused::class,
    ];

    private float $time = 1_000_000.0;
    private readonly Replicas $replicas;
    private readonly Talk $talk;
    private readonly Hold $hold;
    private ?Wanted $wanted = null;
    private ?Attempt $attempt = null;
    private string $version = '';
    /** @var list<string> */
    private array $due = [];
    /** @var array<string, string> */
    private array $keys = [];
    /** @var array<string, Running> */
    private array $running = [];
    private readonly Warnings $warnings;

    /**
     * @param array<string, mixed> $transcript
     * @param array<string, mixed> $grant
     */
    public function __construct(private readonly array $transcript, private readonly array $grant)
    {
        $known = ['name', 'why', 'servers', 'talk', 'options', 'begins', 'steps'];
        expect(array_diff(array_keys($transcript), $known) === [], 'an unknown member');
        Clock::$fake = fn (): float => $this->time;
        $urls = [];
        for ($i = 0; $i < $transcript['servers']; $i++) {
            $urls[] = "http://server-$i";
        }
        $this->replicas = new Replicas($urls);
        $this->warnings = new Warnings();
        $this->talk = new Talk($this->replicas, 5000.0, $this->warnings);
        if ($grant !== []) {
            $held = Grant::read(new Answer(200, $grant, '', $this->time));
            expect($held !== null, 'the grant of the file is none');
            $this->hold = new Hold('a', $held, $held->slots);
        }
    }

    public function play(): void
    {
        foreach ($this->transcript['steps'] as $number => $step) {
            try {
                $this->take($step);
            } catch (Throwable $error) {
                $text = json_encode($step);
                throw new RuntimeException("step $number, $text: {$error->getMessage()}", 0, $error);
            }
        }
        foreach ($this->running as $name => $talk) {
            expect($talk->isOver, "$name did not end");
        }
    }

    /** @param array<string, mixed> $step */
    private function take(array $step): void
    {
        $words = array_values(array_intersect(array_keys($step), array_keys(self::STEPS)));
        expect(count($words) === 1, 'an unknown step');
        $allowed = self::STEPS[$words[0]];
        $others = array_diff(array_keys($step), $words, explode(' ', $allowed));
        expect($allowed === '*' || $others === [], 'an unknown member: ' . implode(' ', $others));
        $do = str_replace('_', '', $words[0]);
        $this->$do($step);
    }

    // ---- the talks ---------------------------------------------------------------

    /** @param array<string, mixed> $step */
    private function of(array $step): Running
    {
        $name = $step['of'] ?? $this->transcript['talk'];
        if (!isset($this->running[$name]) || $this->running[$name]->isOver) {
            $this->running[$name] = new Running($this->begin(explode(' ', $name)[0]));
        }
        return $this->running[$name];
    }

    private function begin(string $kind): Generator
    {
        $options = $this->transcript['options'] ?? [];
        switch ($kind) {
            case 'acquire':
                $this->wanted = new Wanted(
                    $options['resources'],
                    $options['ttl_ms'] ?? null,
                    $options['wait_ms'] ?? null,
                    $options['owner'] ?? null,
                    $options['limit'] ?? null,
                    $options['permits'] ?? 1,
                    $options['shared'] ?? false,
                );
                $this->attempt = new Attempt($this->wanted);
                return $this->talk->acquire($this->wanted, $this->attempt);
            case 'renew':
                return $this->renewing();
            case 'extend':
                return $this->talk->extend($this->hold, $options['ttl_ms']);
            case 'downgrade':
                return $this->talk->downgrade($this->hold);
            case 'release':
                return $this->talk->release($this->hold);
            case 'inspect':
                return $this->talk->holder($options['resource']);
            case 'watch':
                return $this->talk->nextHolder($options['resource'], $this->version);
            case 'force':
                return $this->talk->force($options['id'], $options['fencing_token']);
        }
        throw new RuntimeException("no talk $kind");
    }

    /** Until each renewal, the lock waits. */
    private function renewing(): Generator
    {
        do {
            yield new Pause(max(0.0, $this->hold->grant->renewAtMs - $this->time));
            $isExtended = yield from $this->talk->extend($this->hold);
        } while ($isExtended);
    }

    /** Pauses that are none. */
    private function skip(Running $talk): void
    {
        while ($talk->now instanceof Pause && $talk->now->ms <= 1) {
            $this->time += $talk->now->ms;
            $talk->send(null);
        }
    }

    // ---- the steps ---------------------------------------------------------------

    /** @param array<string, mixed> $step */
    private function send(array $step): void
    {
        $talk = $this->of($step);
        $this->skip($talk);
        $talk->asked = $step;
        $asked = $talk->now;
        expect($asked instanceof Send, 'no request: ' . ($talk->error ?? get_debug_type($asked)));
        $talk->url = $this->chosen();
        $talk->sentMs = $this->time;
        expect("$asked->method $asked->path" === $step['send'], "$asked->method $asked->path");
        expect($talk->url === "http://server-{$step['server']}", $talk->url);
        expect($asked->body == ($step['body'] ?? null), (string) json_encode($asked->body));
        expect(self::isClose($asked->timeoutMs, $step['timeout_ms'] ?? 5000), "timeout $asked->timeoutMs");
        expect(self::isClose($asked->waitMs, $step['wait_ms'] ?? 0), "wait $asked->waitMs");
        $wanted = $step['headers'] ?? [];
        expect(array_keys($wanted) == array_keys($asked->headers), (string) json_encode($asked->headers));
        foreach ($wanted as $name => $text) {
            if (str_starts_with($text, '$')) {
                $text = $this->keys[$text] ??= $asked->headers[$name];
            }
            expect($text === $asked->headers[$name], "$name: {$asked->headers[$name]}");
        }
        expect(count(array_unique($this->keys)) === count($this->keys), 'two names for one key');
    }

    /** @param array<string, mixed> $step */
    private function again(array $step): void
    {
        $again = ['server' => $step['again']] + $step + $this->of($step)->asked;
        unset($again['again']);
        $this->send($again);
    }

    /** @param array<string, mixed> $step */
    private function answer(array $step): void
    {
        $this->time += $step['after_ms'] ?? 0;
        $talk = $this->of($step);
        expect($talk->now instanceof Send, 'nothing was asked');
        $isOverdue = $step['overdue'] ?? false;
        if ($isOverdue) {
            $this->replicas->avoid($talk->url);
        }
        if ($step['answer'] === 'stale') { // the same request again, at once
            $this->isStale = true;
            return;
        }
        if (is_string($step['answer'])) {
            $code = ['lost' => Answer::LOST, 'unsent' => Answer::UNSENT, 'untrusted' => Answer::UNTRUSTED];
            $answer = Answer::failure($code[$step['answer']], '', $talk->url, $talk->sentMs, $this->isStale);
        } else {
            $body = isset($step['grant']) ? $step['grant'] + $this->grant : ($step['body'] ?? null);
            $text = $step['text'] ?? json_encode($body ?: new stdClass());
            expect(isset($step['text']) || $body !== null, 'an answer without a body');
            $answer = Answer::read(
                $step['answer'],
                $text,
                $step['retry_after'] ?? '',
                $talk->url,
                $talk->sentMs,
                '',
                $this->isStale,
            );
            if ($answer->isGood() && !$isOverdue) {
                $this->replicas->works($talk->url);
            }
        }
        $this->isStale = false;
        $talk->send($answer);
    }

    private bool $isStale = false;

    /** @param array<string, mixed> $step */
    private function pausems(array $step): void
    {
        $talk = $this->of($step);
        expect($talk->now instanceof Pause, 'no pause: ' . ($talk->error ?? get_debug_type($talk->now)));
        expect(self::isClose($talk->now->ms, $step['pause_ms']), "pause {$talk->now->ms}");
        $this->time += $talk->now->ms;
        $talk->send(null);
    }

    /** @param array<string, mixed> $step */
    private function passms(array $step): void
    {
        $this->time += $step['pass_ms'];
    }

    /** @param array<string, mixed> $step */
    private function end(array $step): void
    {
        $talk = $this->of($step);
        $this->skip($talk);
        expect($talk->now === null, 'it goes on: ' . json_encode($talk->now));
        [$end, $is] = $this->outcome($talk);
        expect($end === $step['end'], "$end: {$talk->error?->getMessage()}");
        unset($step['end'], $step['of']);
        $this->compare($is, $step);
        $talk->isOver = true;
    }

    /** @return array{string, array<string, mixed>} how it ended, and what that says */
    private function outcome(Running $talk): array
    {
        foreach (self::ERRORS as $name => $class) {
            if ($talk->error instanceof $class) {
                $is = [];
                foreach (get_object_vars($talk->error) as $member => $value) {
                    $member = strtolower((string) preg_replace('/(?=[A-Z])/', '_', $member));
                    $is[$member === 'error_code' ? 'code' : $member] = $value;
                }
                return [$name, $is];
            }
        }
        if ($talk->error !== null) {
            throw $talk->error;
        }
        if (str_contains($this->warnings->last, 'not released')) {
            return ['not_released', []];
        }
        if ($talk->result instanceof Grant) {
            return ['granted', $this->state(new Hold('a', $talk->result, $talk->result->slots))];
        }
        if (in_array($this->transcript['talk'], ['inspect', 'watch'], true)) {
            $lock = $talk->result;
            if ($this->transcript['talk'] === 'watch') {
                $this->version = $lock['version'];
                $lock = $lock['held'] ? $lock : null;
            }
            return $lock === null ? ['free', []] : ['holder', self::members(HeldLock::read($lock))];
        }
        return [$talk->result === false ? 'free' : 'done', []];
    }

    /** @return array<string, mixed> */
    private static function members(HeldLock $lock): array
    {
        $is = [];
        foreach (get_object_vars($lock) as $member => $value) {
            $is[strtolower((string) preg_replace('/(?=[A-Z])/', '_', $member))] = $value;
        }
        return $is;
    }

    /** @return array<string, mixed> */
    private function state(Hold $hold): array
    {
        return [
            'token' => $hold->grant->token,
            'slots' => $hold->slots,
            'fencing_token' => $hold->grant->fencingToken,
            'shared' => $hold->grant->isShared,
            'work_ms' => $hold->remainingMs(),
            'validity_ms' => $hold->validityMs(),
            'renew_ms' => max(0.0, $hold->grant->renewAtMs - $this->time),
        ];
    }

    /**
     * @param array<string, mixed> $is
     * @param array<string, mixed> $expected
     */
    private function compare(array $is, array $expected): void
    {
        foreach ($expected as $name => $value) {
            expect(array_key_exists($name, $is), "it has no $name");
            $isSame = str_ends_with($name, '_ms') && $value !== null
                ? self::isClose((float) $is[$name], $value)
                : $is[$name] === $value;
            expect($isSame, "$name is " . json_encode($is[$name]));
        }
    }

    /** @param array<string, mixed> $step */
    private function hold(array $step): void
    {
        $this->compare($this->state($this->hold), $step['hold']);
    }

    /** @param array<string, mixed> $step */
    private function leave(array $step): void
    {
        $talk = $this->of($step);
        $this->skip($talk);
        expect($talk->now !== null, 'it has ended');
        $talk->isOver = true;
    }

    /** @param array<string, mixed> $step */
    private function cancel(array $step): void
    {
        $talk = $this->of($step);
        $isOpen = $this->attempt->mayBeGranted || $talk->now instanceof Send;
        expect($isOpen === $step['gives_back'], 'gives_back');
        $talk->isOver = true;
        if ($step['gives_back']) {
            $this->running[$this->transcript['talk']] =
                new Running($this->talk->giveBack($this->wanted, $this->attempt));
        }
    }

    // ---- which replica -----------------------------------------------------------

    /** @param array<string, mixed> $step */
    private function chosen(): string
    {
        return $this->replicas->choose(function (string $url): void {
            $this->due[] = $url;
        });
    }

    private function choose(array $step): void
    {
        $this->due = [];
        expect($this->chosen() === $this->replicas->urls[$step['choose']], 'another one');
        $probes = array_map(fn (int $one): string => $this->replicas->urls[$one], $step['probes'] ?? []);
        expect($this->due === $probes, 'probes: ' . implode(' ', $this->due));
    }

    /** @param array<string, mixed> $step */
    private function failed(array $step): void
    {
        $this->replicas->avoid($this->replicas->urls[$step['failed']]);
    }

    /** @param array<string, mixed> $step */
    private function worked(array $step): void
    {
        $this->replicas->works($this->replicas->urls[$step['worked']]);
    }

    /** @param array<string, mixed> $step */
    private function probed(array $step): void
    {
        $talk = new Running($this->talk->probe($this->replicas->urls[$step['probed']]));
        expect($talk->now instanceof Send && $talk->now->path === '/readyz', 'no probe');
        $talk->send(new Answer($step['works'] ? 200 : 503, []));
    }

    /**
     * An exact time may be rounded; a range is of times drawn at random.
     *
     * @param float|int|array{float, float} $expected
     */
    private static function isClose(float $actual, float|int|array $expected): bool
    {
        [$least, $most] = is_array($expected) ? $expected : [$expected, $expected];
        return $least - 1 <= $actual && $actual <= $most + 1;
    }
}

<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Internal;

/** The servers, and which one to ask. */
final class Replicas
{
    private const AVOID_FIRST_MS = 1000.0;
    private const AVOID_LAST_MS = 60000.0;

    /** @var array<string, array{failures: int, failedAt: float, until: float, isAvoided: bool, isProbed: bool}> */
    private array $marks = [];

    /** @param list<string> $urls */
    public function __construct(public readonly array $urls)
    {
    }

    /** @return array<string, mixed> */
    public function __debugInfo(): array
    {
        return ['urls' => array_map(self::shown(...), $this->urls)];
    }

    /** Without a user and a password. */
    public static function shown(string $url): string
    {
        return preg_replace('~^([a-z+.-]*://)?.*@~is', '$1', $url) ?? '';
    }

    public function count(): int
    {
        return count($this->urls);
    }

    /**
     * The first that is not avoided; if all are, the one that failed first.
     * Waiting clients are served in order only if they ask the same server.
     *
     * @param (\Closure(string): void)|null $probe begins a probe, whose end is reported to probed()
     */
    public function choose(?\Closure $probe = null): string
    {
        $now = Clock::nowMs();
        $free = [];
        foreach ($this->urls as $url) {
            if (!$this->isAvoided($url, $now, $probe)) {
                $free[] = $url;
            }
        }
        if ($free !== []) {
            return $free[0];
        }
        $first = $this->urls[0];
        foreach ($this->urls as $url) {
            if ($this->marks[$url]['failedAt'] < $this->marks[$first]['failedAt']) {
                $first = $url;
            }
        }
        return $first;
    }

    /** @param (\Closure(string): void)|null $probe */
    private function isAvoided(string $url, float $now, ?\Closure $probe): bool
    {
        $mark = $this->marks[$url] ?? null;
        if ($mark === null || !$mark['isAvoided']) {
            return false;
        }
        if ($now < $mark['until']) {
            return true;
        }
        if ($probe === null || count($this->urls) === 1) {
            return false;
        }
        if (!$mark['isProbed']) {
            $this->marks[$url]['isProbed'] = true;
            $probe($url);
        }
        return true;
    }

    /** It failed, or a response is overdue. '': no replica was asked. */
    public function avoid(string $url): void
    {
        if ($url === '') {
            return;
        }
        $now = Clock::nowMs();
        $mark = $this->marks[$url] ?? [
            'failures' => 0, 'failedAt' => 0.0, 'until' => 0.0, 'isAvoided' => false, 'isProbed' => false,
        ];
        $mark['failedAt'] = $now;
        if (!$mark['isAvoided'] || $now >= $mark['until']) {
            $avoidMs = min(self::AVOID_LAST_MS, self::AVOID_FIRST_MS * 2 ** $mark['failures']);
            // random, so that clients do not probe together
            $mark['until'] = $now + Clock::betweenMs($avoidMs * 0.75, $avoidMs);
            $mark['failures'] = min($mark['failures'] + 1, 10);
        }
        $mark['isAvoided'] = true;
        $this->marks[$url] = $mark;
    }

    /** It answered a request, in time. */
    public function works(string $url): void
    {
        unset($this->marks[$url]);
    }

    public function probed(string $url, bool $isBack): void
    {
        if (!isset($this->marks[$url])) {
            return;
        }
        $this->marks[$url]['isProbed'] = false;
        if ($isBack) {
            $this->marks[$url]['isAvoided'] = false; // if it fails again, for longer
        } else {
            $this->avoid($url);
        }
    }
}

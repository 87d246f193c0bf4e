<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd;

use Psr\Log\LoggerInterface;
use Redlockd\Exception\LockLost;
use Redlockd\Internal\Attempt;
use Redlockd\Internal\Caller;
use Redlockd\Internal\Clock;
use Redlockd\Internal\Grant;
use Redlockd\Internal\Hold;
use Redlockd\Internal\Identity;
use Redlockd\Internal\Replicas;
use Redlockd\Internal\Talk;
use Redlockd\Internal\Wanted;

/** Connections to the servers, for any number of locks. */
final class Client
{
    public const DEFAULT_URL = 'http://127.0.0.1:8080';
    // How long it takes to give back or to release what an exception of a signal
    // handler has interrupted: the program may be about to end.
    private const LAST_MS = 2000.0;

    private readonly Replicas $replicas;
    private readonly Identity $identity;
    private readonly Caller $caller;
    private ?Caller $background = null;
    private readonly Talk $talk;

    /**
     * What is omitted comes from the environment: REDLOCKD_URL (several URLs with
     * commas between them), REDLOCKD_AUTH_TOKEN or REDLOCKD_AUTH_TOKEN_FILE,
     * REDLOCKD_CACERT, REDLOCKD_CERT, REDLOCKD_KEY.
     *
     * @param string|list<string>|null $urls          of the replicas, in the order in which they are asked
     * @param string|null              $authToken     the access token
     * @param string|null              $authTokenFile that has it; it is read again after a 401
     * @param string|null              $caFile        PEM, of the CAs that sign the servers' certificates
     * @param string|null              $certFile      PEM, of this client's certificate with its chain
     * @param string|null              $keyFile       PEM, of its key, without a passphrase
     * @param int                      $timeoutMs     for a connection, and for a response
     *
     * @throws \InvalidArgumentException
     */
    public function __construct(
        #[\SensitiveParameter] string|array|null $urls = null,
        #[\SensitiveParameter] ?string $authToken = null,
        ?string $authTokenFile = null,
        ?string $caFile = null,
        ?string $certFile = null,
        ?string $keyFile = null,
        int $timeoutMs = 5000,
        private readonly ?LoggerInterface $logger = null,
    ) {
        $urls ??= getenv('REDLOCKD_URL') ?: self::DEFAULT_URL;
        $urls = is_string($urls) ? explode(',', $urls) : array_values($urls);
        $urls = array_map(static fn (string $url): string => rtrim(trim($url), '/'), $urls);
        $urls = array_values(array_filter($urls, static fn (string $url): bool => $url !== ''));
        if ($urls === []) {
            throw new \InvalidArgumentException('name at least one URL of redlockd');
        }
        foreach ($urls as $url) {
            $host = parse_url($url, PHP_URL_HOST);
            if (!preg_match('~^https?://[^?#\s]+$~D', $url) || !is_string($host) || $host === '') {
                throw new \InvalidArgumentException('not an http:// or https:// URL: ' . Replicas::shown($url));
            }
        }
        if ($timeoutMs <= 0) {
            throw new \InvalidArgumentException('a timeout is longer than 0 ms');
        }
        $this->replicas = new Replicas($urls);
        $this->identity = new Identity($authToken, $authTokenFile, $caFile, $certFile, $keyFile);
        $this->caller = new Caller($this->replicas, $this->identity);
        $this->talk = new Talk($this->replicas, $timeoutMs, $logger);
    }

    /**
     * A lock, which nothing has asked for yet: see Lock.
     *
     * @param string|list<string> $resources     to lock: one, or several at once
     * @param int|null            $ttlMs         how long it lasts if nothing renews it; null: as the server says
     * @param int|null            $waitMs        how long to wait for it, and for a server; null: without a limit
     * @param string|null         $owner         a label, shown to clients that find the lock held
     * @param int|null            $limit         how many permits the resource has; null: it is a lock
     * @param int                 $permits       how many of them to take
     * @param bool                $shared        as a reader; other readers may hold it, too
     * @param bool                $renewBySignal renew it by SIGALRM, also while check() is not called: see Lock
     *
     * @throws \InvalidArgumentException
     */
    public function lock(
        string|array $resources,
        ?int $ttlMs = null,
        ?int $waitMs = null,
        ?string $owner = null,
        ?int $limit = null,
        int $permits = 1,
        bool $shared = false,
        bool $renewBySignal = false,
    ): Lock {
        $wanted = new Wanted((array) $resources, $ttlMs, $waitMs, $owner, $limit, $permits, $shared);
        return new Lock($this, $wanted, $renewBySignal);
    }

    /** Who holds the lock; null: nobody. */
    public function get(string $resource): ?HeldLock
    {
        $body = $this->run($this->talk->holder($resource));
        return $body === null ? null : HeldLock::read($body);
    }

    /**
     * The locks that are held, with resources that begin with $prefix. A lock that
     * is granted or expires meanwhile may be listed or not.
     *
     * @return \Generator<int, HeldLock>
     */
    public function locks(string $prefix = ''): \Generator
    {
        $seen = []; // a lock may be on two pages
        $cursor = '';
        do {
            $query = http_build_query(array_filter(
                ['page_size' => '1000', 'prefix' => $prefix, 'cursor' => $cursor],
                static fn (string $text): bool => $text !== '',
            ), '', '&', PHP_QUERY_RFC3986);
            $body = $this->run($this->talk->get('the list', "/locks?$query", 'locks'));
            foreach ($body['locks'] as $of) {
                if (!isset($seen[$of['id']])) {
                    $seen[$of['id']] = true;
                    yield HeldLock::read($of);
                }
            }
            $cursor = $body['next_cursor'] ?? '';
        } while ($cursor !== '');
    }

    /**
     * Who holds the lock, now and whenever it changes hands; null: nobody. Readers
     * who join others, or leave some behind, are no change. It misses nobody who
     * holds the lock for a second, and goes on while servers fail.
     *
     * @return \Generator<int, HeldLock|null>
     */
    public function watch(string $resource): \Generator
    {
        $version = '';
        while (true) {
            $body = $this->run($this->talk->nextHolder($resource, $version));
            $version = $body['version'];
            yield $body['held'] ? HeldLock::read($body) : null;
        }
    }

    /**
     * Releases the lock of a dead holder; locks() has its id and fencing token. The
     * holder is not notified. false: no lock with this fencing token is held (any
     * more).
     *
     * @param int|string $fencingToken 'all': the locks of all readers
     */
    public function forceRelease(string $id, int|string $fencingToken): bool
    {
        if (is_string($fencingToken) && $fencingToken !== 'all') {
            throw new \InvalidArgumentException("a fencing token is a number, or 'all'");
        }
        return (bool) $this->run($this->talk->force($id, $fencingToken));
    }

    /** @return array<string, mixed> without the secrets */
    public function __debugInfo(): array
    {
        return ['replicas' => $this->replicas];
    }

    /** Closes the connections; the next call opens new ones. */
    public function close(): void
    {
        $this->caller->close();
        $this->background?->close();
    }

    /**
     * @internal The grant; if a signal handler throws, the lock is given back.
     *
     * @template T
     * @param \Closure(Grant): T $keep is called with the grant
     * @return T
     */
    public function acquire(Wanted $wanted, \Closure $keep): mixed
    {
        $attempt = new Attempt($wanted);
        $isKept = false;
        try {
            $kept = $keep($this->run($this->talk->acquire($wanted, $attempt)));
            $isKept = true;
        } finally {
            // an exception of a signal handler may be of this package, too: the loss
            // of another lock
            if (!$isKept && !$attempt->hasEnded && ($attempt->isOpen || $attempt->mayBeGranted)) {
                $this->caller->run($this->talk->giveBack($wanted, $attempt), Clock::nowMs() + self::LAST_MS);
            }
        }
        return $kept;
    }

    /**
     * @internal If a signal handler throws, the release goes on before that.
     *
     * @throws LockLost
     */
    public function release(Hold $hold): void
    {
        $hasEnded = false;
        try {
            $this->run($this->talk->release($hold));
            $hasEnded = true;
        } finally {
            if (!$hasEnded && !$hold->isDone) {
                try {
                    $this->caller->run($this->talk->release($hold, true), Clock::nowMs() + self::LAST_MS);
                } catch (LockLost) {
                    // there is nothing to release any more
                }
            }
        }
    }

    /** @internal */
    public function talk(): Talk
    {
        return $this->talk;
    }

    /** @internal */
    public function caller(): Caller
    {
        return $this->caller;
    }

    /** @internal another one for signal handlers, which may interrupt the first */
    public function background(): Caller
    {
        return $this->background ??= new Caller($this->replicas, $this->identity);
    }

    /** @internal */
    public function logger(): ?LoggerInterface
    {
        return $this->logger;
    }

    /**
     * @template T
     * @param \Generator<int, Internal\Send|Internal\Pause, Internal\Answer|null, T> $talk
     * @return T
     */
    private function run(\Generator $talk): mixed
    {
        return $this->caller->run($talk);
    }
}

// SPDX-License-Identifier: MIT
/**
 * Distributed locks from a redlockd server.
 *
 *     await withLock("order:42", { ttlMs: 30_000, waitMs: 5_000 }, async (lock) => {
 *       await ship(42, { fence: lock.fencingToken, signal: lock.signal });
 *     });
 */

// What older compilers, and programs without "DOM" in lib, do not know. Where it
// is known, these declarations merge with it.
declare global {
  interface SymbolConstructor {
    readonly dispose: unique symbol;
    readonly asyncDispose: unique symbol;
  }
  interface Disposable {
    [Symbol.dispose](): void;
  }
  interface AsyncDisposable {
    [Symbol.asyncDispose](): PromiseLike<void>;
  }
  interface AbortSignal {
    readonly aborted: boolean;
  }
}

export interface AcquireOptions {
  /** Milliseconds until the lock of a dead holder expires; by default the
   * server's. */
  ttlMs?: number | undefined;
  /** Milliseconds to wait for the lock, and for a server that works; 0: do not
   * wait. By default without a limit. */
  waitMs?: number | undefined;
  /** Shown to clients that find the lock held. */
  owner?: string | undefined;
  /** As a reader: others hold the lock, too, if they are readers. */
  shared?: boolean | undefined;
  /** So many may hold the resource at once, each with a slot of its own. */
  limit?: number | undefined;
  /** With a limit: how many slots to take, all or none. By default 1. */
  permits?: number | undefined;
  /** Aborts the acquire, not the lock. What was granted meanwhile is released in
   * the background. */
  signal?: AbortSignal | undefined;
}

/** Where a lock comes from: a client whose connections it shares, or servers. */
export type From =
  | { client?: Client | undefined; urls?: undefined }
  | { client?: undefined; urls?: string | Iterable<string> | undefined };

/** One resource, or several: all or none. */
export type Resources = string | readonly string[];

export interface ClientOptions {
  /** The servers; by default REDLOCKD_URL, separated by commas, or
   * http://127.0.0.1:8080. */
  urls?: string | Iterable<string> | undefined;
  /** Milliseconds for a connection, and for an answer; by default 5000. */
  timeoutMs?: number | undefined;
  /** Our token for the servers; by default REDLOCKD_AUTH_TOKEN. */
  authToken?: string | undefined;
  /** A file with it, read again after a 401; by default
   * REDLOCKD_AUTH_TOKEN_FILE. */
  authTokenFile?: string | undefined;
  /** The CAs to trust, instead of the usual ones; by default REDLOCKD_CACERT. */
  caFile?: string | undefined;
  /** Our certificate; by default REDLOCKD_CERT. */
  certFile?: string | undefined;
  /** Its key, without a passphrase; by default REDLOCKD_KEY, or in certFile. */
  keyFile?: string | undefined;
}

/** A lock that was granted. It is extended in the background until release(). */
export class Lock implements AsyncDisposable {
  private constructor();
  /** Its name in URLs. */
  readonly id: string;
  /** Proves to redlockd that the lock is ours: keep it secret. A downgrade
   * changes it. */
  readonly token: string;
  /** Rises with every grant: the resource should refuse lower ones. */
  readonly fencingToken: number;
  /** Whether others may hold the lock, too, as readers. */
  readonly shared: boolean;
  /** With a limit: the numbers that nobody else has, from 0 on. */
  readonly slots: readonly number[];
  /** The first of them; undefined without a limit. */
  readonly slot: number | undefined;
  /** For how many milliseconds work may go on; 0 if it may not. */
  readonly remainingMs: number;
  /** Aborts with a LockLost when the lock is lost, about to end, or released. */
  readonly signal: AbortSignal;
  /** Throws LockLost unless the lock is still ours. Call it right before each
   * step that cannot be undone. */
  check(): void;
  /** Makes an exclusive lock a shared one. Stop writing before you call it:
   * others may read before it resolves. Rejects with LockLost, or with
   * RequestRefused if the servers refuse it. */
  downgrade(): Promise<void>;
  /** Lets others have the lock. Rejects with LockLost if it was lost before. */
  release(): Promise<void>;
  /** release(), for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
  /** Without the token. */
  toJSON(): {
    id: string;
    fencingToken: number;
    remainingMs: number;
    shared: boolean;
    slots: readonly number[];
  };
}

/** What the servers tell of a lock. Undefined: not known, as for locks of other
 * libraries, and of readers. */
export interface HeldLock {
  id: string;
  resources: string[];
  /** Of a permit, whose pool is the resource; otherwise empty. */
  slots: number[];
  owner: string | undefined;
  fencingToken: number | undefined;
  remainingMs: number | undefined;
  /** Clients that wait for it at the server that was asked. */
  waiters: number;
  /** How many hold it; 0: it is exclusive. */
  readers: number;
  /** Another one when the lock has changed hands. */
  version: string;
}

/** Connections to the servers, for any number of locks. */
export class Client implements AsyncDisposable {
  constructor(options?: ClientOptions);
  /** Resolves with a Lock as soon as it is ours. */
  acquire(resources: Resources, options?: AcquireOptions): Promise<Lock>;
  /** Does the work under a lock; resolves with what the work resolves with.
   * Rejects with LockLost if the lock was lost meanwhile. */
  withLock<T>(
    resources: Resources,
    work: (lock: Lock) => T | PromiseLike<T>,
  ): Promise<T>;
  withLock<T>(
    resources: Resources,
    options: AcquireOptions,
    work: (lock: Lock) => T | PromiseLike<T>,
  ): Promise<T>;
  /** Who holds the lock; null: nobody. */
  get(
    resources: Resources,
    options?: { signal?: AbortSignal | undefined },
  ): Promise<HeldLock | null>;
  /** The holder, and then each new one; null while nobody holds the lock. Readers
   * who join others, or leave some behind, are no change. */
  watch(
    resources: Resources,
    options?: { signal?: AbortSignal | undefined },
  ): AsyncGenerator<HeldLock | null, void, undefined>;
  /** The locks that are held, with resources that begin with prefix. A lock that
   * is granted or ends meanwhile may be listed or not. */
  locks(options?: {
    prefix?: string | undefined;
    signal?: AbortSignal | undefined;
  }): AsyncGenerator<HeldLock, void, undefined>;
  /** Releases the lock of a dead holder. "all": the locks of all readers. The
   * holder is not told. False: no such lock is held (any more). */
  forceRelease(id: string, fencingToken: number | "all"): Promise<boolean>;
  /** Closes the connections; the next call opens new ones. */
  close(): Promise<void>;
  /** close(), for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Resolves with a Lock as soon as it is ours. */
export function acquire(
  resources: Resources,
  options?: AcquireOptions & From,
): Promise<Lock>;

/** Does the work under a lock; resolves with what the work resolves with.
 * Rejects with LockLost if the lock was lost meanwhile. */
export function withLock<T>(
  resources: Resources,
  work: (lock: Lock) => T | PromiseLike<T>,
): Promise<T>;
export function withLock<T>(
  resources: Resources,
  options: AcquireOptions & From,
  work: (lock: Lock) => T | PromiseLike<T>,
): Promise<T>;

/** Every error of this package, but for mistaken arguments. */
export class RedlockdError extends Error {}

/** Somebody else held the lock until the wait had passed. */
export class LockHeld extends RedlockdError {
  private constructor();
  /** Of the holder, if known. */
  readonly owner: string | undefined;
  readonly remainingMs: number | undefined;
  readonly fencingToken: number | undefined;
  /** How many readers hold it. */
  readonly readers: number | undefined;
}

/** The lock ended before its holder released it. What the holder did since then
 * may have overlapped with the work of the next holder. */
export class LockLost extends RedlockdError {}

/** No server granted or refused the lock until the wait had passed. If an answer
 * was lost, the lock may be held until its TTL ends. */
export class Unavailable extends RedlockdError {}

/** No server granted it: we ask them too often. */
export class RateLimited extends Unavailable {
  private constructor();
  readonly retryAfterMs: number;
}

/** No server has a certificate that we trust. */
export class Untrusted extends RedlockdError {}

/** The signal that was given aborted; its reason is the cause. */
export class AbortError extends RedlockdError {
  private constructor();
  readonly code: "ABORT_ERR";
}

/** The request is wrong, and would be wrong again. */
export class RequestRefused extends RedlockdError {
  protected constructor();
  readonly status: number;
  readonly code: string;
}

/** 401: the servers do not know our token, or we have none. */
export class Unauthorized extends RequestRefused {
  private constructor();
}

/** 403: the servers know us, but we may not do this. */
export class Forbidden extends RequestRefused {
  private constructor();
}

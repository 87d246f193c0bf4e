export { acquire, Client, withLock } from "./client.js";
export {
  Forbidden, LockHeld, LockLost, RateLimited, RedlockdError, RequestRefused,
  Unauthorized, Unavailable, Untrusted,
} from "./errors.js";
export { Lock } from "./lock.js";

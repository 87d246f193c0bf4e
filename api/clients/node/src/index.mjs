// SPDX-License-Identifier: MIT
// For import; index.js is for require(). Both have the same classes, so that
// instanceof works between a program's parts.
export {
  AbortError, acquire, Client, Forbidden, Lock, LockHeld, LockLost, RateLimited,
  RedlockdError, RequestRefused, Unauthorized, Unavailable, Untrusted, withLock,
} from "./index.js";

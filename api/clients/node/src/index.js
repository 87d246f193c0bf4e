// SPDX-License-Identifier: MIT
"use strict";

const { acquire, Client, withLock } = require("./client.js");
const {
  AbortError, Forbidden, LockHeld, LockLost, RateLimited, RedlockdError,
  RequestRefused, Unauthorized, Unavailable, Untrusted,
} = require("./errors.js");
const { Lock } = require("./lock.js");

module.exports = {
  AbortError, acquire, Client, Forbidden, Lock, LockHeld, LockLost, RateLimited,
  RedlockdError, RequestRefused, Unauthorized, Unavailable, Untrusted, withLock,
};

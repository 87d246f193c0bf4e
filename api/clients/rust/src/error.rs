// SPDX-License-Identifier: MIT
use std::fmt;
use std::time::Duration;

/// The holder of a lock, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The label that it gave itself.
    pub owner: Option<String>,
    /// Its fencing token.
    pub fencing_token: Option<u64>,
    /// How many readers hold the lock.
    pub readers: Option<u64>,
    /// How long until the lock expires, unless it is extended.
    pub remaining: Option<Duration>,
}

/// Every error of this crate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Somebody else held the lock until the wait had passed.
    Held {
        /// What happened, in words.
        message: String,
        /// Who holds it.
        holder: Holder,
    },
    /// The lock expired, or was released by force, before its holder released it.
    /// What the holder did since then may have overlapped with the work of the next
    /// holder.
    Lost(String),
    /// No server answered with a grant or a refusal until the wait had passed. If a
    /// response was lost, the lock may be held until its TTL ends.
    Unavailable(String),
    /// No server granted it: this client asks too often, or holds too many locks.
    RateLimited {
        /// What happened, in words.
        message: String,
        /// When the server asks the client to come back.
        retry_after: Duration,
    },
    /// No server has a certificate that this client trusts: signed by a known CA, for
    /// its name, and not expired.
    Untrusted(String),
    /// 401: the servers do not know the access token, or there is none.
    Unauthorized {
        /// What happened, in words.
        message: String,
        /// Of the problem; empty: it is not from redlockd.
        code: String,
    },
    /// 403: the servers know this client, but it may not do this.
    Forbidden {
        /// What happened, in words.
        message: String,
        /// Of the problem; empty: it is not from redlockd.
        code: String,
    },
    /// The request is wrong, and would be wrong again.
    Refused {
        /// What happened, in words.
        message: String,
        /// Of the response.
        status: u16,
        /// Of the problem; empty: it is not from redlockd.
        code: String,
    },
    /// No server confirmed the release: the lock expires with its TTL.
    NotReleased(String),
    /// The acquire was given up by its `Cancel`.
    Cancelled,
    /// A parameter is wrong. Nothing was sent.
    Invalid(String),
}

impl Error {
    /// Whether the lock was lost.
    pub fn is_lost(&self) -> bool {
        matches!(self, Error::Lost(_))
    }

    /// Whether somebody else holds the lock.
    pub fn is_held(&self) -> bool {
        matches!(self, Error::Held { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Held { message, .. }
            | Error::RateLimited { message, .. }
            | Error::Unauthorized { message, .. }
            | Error::Forbidden { message, .. }
            | Error::Refused { message, .. } => message,
            Error::Lost(message)
            | Error::Unavailable(message)
            | Error::Untrusted(message)
            | Error::NotReleased(message)
            | Error::Invalid(message) => message,
            Error::Cancelled => "the acquire was given up",
        })
    }
}

impl std::error::Error for Error {}

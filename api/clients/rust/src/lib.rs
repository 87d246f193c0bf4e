// SPDX-License-Identifier: MIT
//! Distributed locks from a redlockd server. [`Client::lock`] asks for a lock,
//! [`Guard`] is a lock that is held.
//!
//! ```
//! use std::time::Duration;
//!
//! use redlockd_client::{Client, Error};
//!
//! fn main() -> Result<(), Error> {
//!     let client = Client::from_env()?;
//!     let guard = client.lock("order:42").ttl(Duration::from_secs(30)).acquire()?;
//!     guard.check()?; // right before each step that cannot be undone
//!     guard.release()
//! }
//! ```
//!
//! Its calls wait. With the feature `tokio`, there are methods for async programs, such
//! as `LockRequest::acquire_async`.

#![warn(missing_docs)]

mod answer;
#[cfg(feature = "tokio")]
mod asynchronous;
mod caller;
mod cancel;
mod client;
mod clock;
mod coalesce;
mod error;
mod grant;
mod http;
mod identity;
mod keeper;
mod lock;
mod replicas;
mod sync;
mod talk;
mod threads;
#[cfg(test)]
mod together;
#[cfg(test)]
mod transcripts;
mod wanted;

pub use cancel::Cancel;
pub use client::{Client, ClientBuilder, HeldLock, Locks, Watch};
pub use error::{Error, Holder};
pub use lock::{Guard, LockRequest};

/// The blocks of the README are tests.
#[cfg(all(doctest, feature = "tokio"))]
#[doc = include_str!("../README.md")]
struct Readme;

// SPDX-License-Identifier: MIT
//! What to lock, and how.

use serde_json::{json, Value};

use crate::answer::{Operation, Request, Sharing};
use crate::clock::random;
use crate::error::Error;

/// Proxies may cut requests after 60 s, some after 15 s.
pub(crate) const LONGEST_WAIT_MS: f64 = 10_000.0;

#[derive(Clone, Default)]
pub(crate) struct Wanted {
    pub resources: Vec<String>,
    /// `None`: the server's default.
    pub ttl_ms: Option<u64>,
    /// `None`: without a limit.
    pub wait_ms: Option<f64>,
    pub owner: Option<String>,
    /// How many permits the resource has, and how many of them to take.
    pub permits: Option<(u64, u64)>,
    pub is_shared: bool,
}

impl Wanted {
    pub fn check(&self) -> Result<(), Error> {
        let wrong = if self.resources.is_empty() {
            "name at least one resource"
        } else if self.permits.is_some() && self.resources.len() > 1 {
            "permits are of one resource"
        } else if self.permits.is_some() && self.is_shared {
            "a permit has one holder: it cannot be shared"
        } else {
            return Ok(());
        };
        Err(Error::Invalid(wrong.into()))
    }

    pub fn name(&self) -> String {
        self.resources.join(", ")
    }

    fn sharing(&self) -> Sharing {
        match (self.is_shared, self.permits) {
            (true, _) => Sharing::Readers,
            (_, Some(_)) => Sharing::Permits,
            _ => Sharing::Nobody,
        }
    }

    /// Of the request that asks for it.
    fn body(&self) -> Value {
        let mut of = match self.resources.as_slice() {
            [one] => json!({ "resource": one }),
            several => json!({ "resources": several }),
        };
        if let Some(ttl_ms) = self.ttl_ms {
            of["ttl_ms"] = ttl_ms.into();
        }
        if let Some(owner) = &self.owner {
            of["owner"] = owner.as_str().into();
        }
        if let Some((limit, permits)) = self.permits {
            of["limit"] = limit.into();
            of["permits"] = permits.into();
        }
        if self.is_shared {
            of["mode"] = "shared".into();
        }
        of
    }
}

/// One acquire. All its requests have one key: if a response with a grant was lost,
/// the next request gets the same lock.
pub(crate) struct Attempt {
    pub wanted: Wanted,
    /// As secret as a token.
    key: String,
    /// By a request whose response does not say.
    pub may_be_granted: bool,
    /// A try has found the lock held.
    must_wait: bool,
}

fn new_key() -> String {
    let mut bytes = [0; 16];
    random(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Attempt {
    pub fn new(wanted: Wanted) -> Self {
        Attempt {
            wanted,
            key: new_key(),
            may_be_granted: false,
            must_wait: false,
        }
    }

    /// After a try: from now on, its requests wait. A server undoes a request that
    /// waits if its client leaves, but not a repeat: so they have another key, unless
    /// they would wait for the lock that they hold themselves.
    pub fn wait_from_now_on(&mut self) {
        self.must_wait = true;
        if !self.may_be_granted {
            self.key = new_key();
        }
    }

    pub fn ask(&self, timeout_ms: f64, left_ms: f64) -> Request {
        let wait_ms = left_ms.clamp(0.0, LONGEST_WAIT_MS).floor();
        let mut body = self.wanted.body();
        if wait_ms > 0.0 {
            body["wait_ms"] = (wait_ms as u64).into();
        }
        self.request(body, timeout_ms, wait_ms)
    }

    /// The same again, to find out whether it was granted.
    pub fn ask_again(&self, timeout_ms: f64) -> Request {
        let mut body = self.wanted.body();
        body["ttl_ms"] = 100.into();
        self.request(body, timeout_ms, 0.0)
    }

    fn request(&self, body: Value, timeout_ms: f64, wait_ms: f64) -> Request {
        Request {
            header: Some(("Idempotency-Key", self.key.clone())),
            body: Some(body),
            wait_ms,
            operation: Some(Operation {
                name: "acquire",
                id: None,
                resources: self.wanted.resources.clone(),
                sharing: self.wanted.sharing(),
                is_urgent: false,
                must_wait: self.must_wait,
            }),
            ..Request::new("POST", "/locks".into(), timeout_ms)
        }
    }
}

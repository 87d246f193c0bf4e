// SPDX-License-Identifier: MIT
//! A lock that was granted, and until when.

use std::sync::Mutex;

use serde_json::Value;

use crate::answer::{Answer, Operation, Sharing};
use crate::clock::now_ms;
use crate::error::Error;
use crate::sync::locked;

/// A lock as a response granted it. Moments are those of `clock`.
#[derive(Clone)]
pub(crate) struct Grant {
    pub id: String,
    /// A secret.
    pub token: String,
    pub fencing_token: u64,
    pub ttl_ms: u64,
    pub renew_at_ms: f64,
    pub until_ms: f64,
    pub work_until_ms: f64,
    pub slots: Vec<u64>,
    pub is_shared: bool,
}

impl Grant {
    /// `None`: it is no grant, or was cut off, or is not from redlockd.
    pub fn read(answer: &Answer) -> Option<Grant> {
        if !matches!(answer.status, 200 | 201) {
            return None;
        }
        let of = &answer.body;
        let number = |name| of.get(name).and_then(Value::as_u64);
        // they are sent back as they are
        let text = |name| {
            let text = of.get(name).and_then(Value::as_str)?;
            let is_plain = !text.is_empty() && text.bytes().all(|c| c.is_ascii_graphic());
            is_plain.then(|| text.to_owned())
        };
        let granted = answer.sent_ms + number("elapsed_ms")? as f64;
        let until_ms = granted + number("validity_ms")? as f64;
        let ttl_ms = number("ttl_ms")?;
        let slots = of.get("slots").and_then(Value::as_array);
        Some(Grant {
            id: text("id")?,
            token: text("token")?,
            fencing_token: number("fencing_token")?,
            ttl_ms,
            renew_at_ms: granted + number("renew_after_ms")? as f64,
            until_ms,
            // a tenth of the TTL to end the work
            work_until_ms: until_ms - ttl_ms as f64 / 10.0,
            slots: slots.map_or_else(Vec::new, |all| {
                all.iter().filter_map(Value::as_u64).collect()
            }),
            is_shared: of.get("mode").and_then(Value::as_str) == Some("shared"),
        })
    }

    /// This grant after an extend. While a lock becomes a shared one, the response of
    /// a renewal may come last, with the token from before. No response takes back
    /// what an earlier one promised.
    fn after(mut self, before: &Grant) -> Grant {
        if before.is_shared && !self.is_shared {
            self.token = before.token.clone();
            self.is_shared = true;
        }
        self.until_ms = self.until_ms.max(before.until_ms);
        self.work_until_ms = self.work_until_ms.max(before.work_until_ms);
        self.slots = before.slots.clone();
        self
    }
}

struct State {
    grant: Grant,
    loss: Option<Error>,
    is_released: bool,
    /// A downgrade has begun: from now on, each extend asks for it.
    wants_shared: bool,
}

/// A lock that was granted: until when, and whether it was lost. Work under it ends a
/// tenth of the TTL before its validity does. Threads share it.
pub(crate) struct Hold {
    pub name: String,
    resources: Vec<String>,
    state: Mutex<State>,
}

impl Hold {
    pub fn new(resources: Vec<String>, grant: Grant) -> Self {
        let wants_shared = grant.is_shared;
        Hold {
            name: resources.join(", "),
            resources,
            state: Mutex::new(State {
                grant,
                loss: None,
                is_released: false,
                wants_shared,
            }),
        }
    }

    /// An extend or a release of it.
    pub fn operation(&self, name: &'static str, is_urgent: bool) -> Operation {
        let grant = self.grant();
        Operation {
            name,
            id: Some(grant.id),
            resources: self.resources.clone(),
            sharing: if grant.is_shared {
                Sharing::Readers
            } else {
                Sharing::Nobody
            },
            is_urgent,
            must_wait: false,
        }
    }

    pub fn grant(&self) -> Grant {
        locked(&self.state).grant.clone()
    }

    pub fn extended(&self, grant: Grant) {
        let mut state = locked(&self.state);
        state.grant = grant.after(&state.grant);
    }

    pub fn wants_shared(&self) -> bool {
        locked(&self.state).wants_shared
    }

    pub fn want_shared(&self, wants: bool) {
        locked(&self.state).wants_shared = wants;
    }

    pub fn set_released(&self) {
        locked(&self.state).is_released = true;
    }

    /// For work: less than until the validity ends.
    pub fn remaining_ms(&self) -> f64 {
        let state = locked(&self.state);
        if state.loss.is_some() || state.is_released {
            return 0.0;
        }
        (state.grant.work_until_ms - now_ms()).max(0.0)
    }

    pub fn validity_ms(&self) -> f64 {
        (locked(&self.state).grant.until_ms - now_ms()).max(0.0)
    }

    /// Before the release. `None`: it is not lost.
    pub fn find_loss(&self) -> Option<Error> {
        if self.remaining_ms() > 0.0 {
            return None;
        }
        Some(self.lose(self.late()))
    }

    /// Returns the loss that came first.
    pub fn lose(&self, loss: Error) -> Error {
        locked(&self.state).loss.get_or_insert(loss).clone()
    }

    pub fn late(&self) -> Error {
        Error::Lost(format!("{}: nothing extended the lock in time", self.name))
    }
}

// SPDX-License-Identifier: MIT
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::sync::locked;

#[derive(Default)]
struct State {
    is_cancelled: bool,
    /// What to call then.
    calls: BTreeMap<u64, Box<dyn FnOnce() + Send>>,
    count: u64,
}

/// Gives up an acquire or a watch from another thread. A clone is the same one.
///
/// A request that is under way is ended at once. Only the opening of a connection is
/// waited for.
#[derive(Clone, Default)]
pub struct Cancel {
    inner: Arc<Mutex<State>>,
}

impl Cancel {
    /// Nothing is given up yet.
    pub fn new() -> Self {
        Cancel::default()
    }

    /// Gives up what uses it, now and later.
    pub fn cancel(&self) {
        let calls = {
            let mut state = locked(&self.inner);
            state.is_cancelled = true;
            std::mem::take(&mut state.calls)
        };
        for call in calls.into_values() {
            call();
        }
    }

    /// Whether `cancel` was called.
    pub fn is_cancelled(&self) -> bool {
        locked(&self.inner).is_cancelled
    }

    /// Calls this when it is cancelled: at once, if it was before. It must not wait.
    pub(crate) fn on_cancel(&self, call: impl FnOnce() + Send + 'static) -> Watching {
        let mut state = locked(&self.inner);
        state.count += 1;
        let number = state.count;
        if state.is_cancelled {
            drop(state);
            call();
        } else {
            state.calls.insert(number, Box::new(call));
        }
        Watching {
            cancel: self.clone(),
            number,
        }
    }
}

/// What was to be called no longer is, when this is dropped.
pub(crate) struct Watching {
    cancel: Cancel,
    number: u64,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let call = locked(&self.cancel.inner).calls.remove(&self.number);
        drop(call); // without the mutex
    }
}

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{now_ms, LONGEST_SLEEP_MS};
use crate::sync::locked;

#[derive(Default)]
struct State {
    is_cancelled: bool,
    /// Of the request that is under way.
    socket: Option<TcpStream>,
}

/// Gives up an acquire or a watch from another thread. A clone is the same one.
///
/// A request that is under way is ended at once. Only the opening of a connection is
/// waited for.
#[derive(Clone, Default)]
pub struct Cancel {
    inner: Arc<(Mutex<State>, Condvar)>,
}

impl Cancel {
    /// Nothing is given up yet.
    pub fn new() -> Self {
        Cancel::default()
    }

    /// Gives up what uses it, now and later.
    pub fn cancel(&self) {
        let mut state = locked(&self.inner.0);
        state.is_cancelled = true;
        if let Some(socket) = state.socket.take() {
            // it fails if the other side has closed the connection
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.inner.1.notify_all();
    }

    /// Whether `cancel` was called.
    pub fn is_cancelled(&self) -> bool {
        locked(&self.inner.0).is_cancelled
    }

    /// The socket of the request that begins now; `None`: it has ended. Returns false
    /// if it was cancelled before.
    pub(crate) fn attach(&self, socket: Option<TcpStream>) -> bool {
        let mut state = locked(&self.inner.0);
        state.socket = socket;
        !state.is_cancelled
    }

    pub(crate) fn sleep(&self, ms: f64) {
        let until_ms = now_ms() + ms;
        let mut state = locked(&self.inner.0);
        loop {
            let left_ms = until_ms - now_ms();
            if state.is_cancelled || left_ms <= 0.0 {
                return;
            }
            let wait = Duration::from_secs_f64(left_ms.min(LONGEST_SLEEP_MS) / 1000.0);
            let woken = self.inner.1.wait_timeout(state, wait);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

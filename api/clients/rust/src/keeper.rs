// SPDX-License-Identifier: MIT
//! Extends a lock while it is held, and notices when it is lost: also while a server
//! takes its time.

use std::sync::{Arc, Mutex};

use crate::caller::{Caller, Ran};
use crate::cancel::Cancel;
use crate::clock::now_ms;
use crate::error::Error;
use crate::grant::Hold;
use crate::sync::locked;
use crate::talk::Extend;
use crate::threads::Timer;

pub(crate) type OnLoss = Arc<dyn Fn(&Error) + Send + Sync>;

#[derive(Default)]
struct State {
    is_renewing: bool,
    /// It cannot be extended any more.
    is_last: bool,
    is_stopped: bool,
    timer: Option<Timer>,
}

pub(crate) struct Keeper {
    caller: Arc<Caller>,
    hold: Arc<Hold>,
    on_loss: Option<OnLoss>,
    /// Of the renewal that is under way.
    cancel: Cancel,
    state: Mutex<State>,
    /// Wakes the tasks that wait for a loss.
    #[cfg(feature = "tokio")]
    pub lost: tokio::sync::Notify,
}

impl Keeper {
    pub fn begin(caller: Arc<Caller>, hold: Arc<Hold>, on_loss: Option<OnLoss>) -> Arc<Self> {
        let keeper = Arc::new(Keeper {
            caller,
            hold,
            on_loss,
            cancel: Cancel::new(),
            state: Mutex::default(),
            #[cfg(feature = "tokio")]
            lost: tokio::sync::Notify::new(),
        });
        keeper.schedule(&mut locked(&keeper.state));
        keeper
    }

    /// From now on the lock cannot be lost.
    pub fn stop(&self) {
        let mut state = locked(&self.state);
        state.is_stopped = true;
        self.unschedule(&mut state);
        drop(state); // a renewal that ends now wants it, too
        self.cancel.cancel();
    }

    /// After an extend that was asked for.
    pub fn moved(self: &Arc<Self>) {
        let mut state = locked(&self.state);
        state.is_last = false;
        self.schedule(&mut state);
    }

    /// Returns the loss that came first.
    pub fn lose(&self, loss: Error) -> Error {
        let loss = {
            let mut state = locked(&self.state);
            let loss = self.hold.lose(loss);
            if state.is_stopped {
                return loss;
            }
            state.is_stopped = true;
            self.unschedule(&mut state);
            loss
        };
        #[cfg(feature = "tokio")]
        self.lost.notify_waiters();
        if let Some(call) = self.on_loss.clone() {
            let loss = loss.clone();
            self.caller.workers.call(Box::new(move || call(&loss)));
        }
        loss
    }

    fn unschedule(&self, state: &mut State) {
        if let Some(timer) = state.timer.take() {
            self.caller.timers.cancel(timer);
        }
    }

    fn schedule(self: &Arc<Self>, state: &mut State) {
        self.unschedule(state);
        if state.is_stopped {
            return;
        }
        let grant = self.hold.grant();
        let moment_ms = if state.is_renewing || state.is_last {
            grant.work_until_ms
        } else {
            grant.renew_at_ms.min(grant.work_until_ms)
        };
        let keeper = Arc::downgrade(self);
        let job = move || {
            if let Some(keeper) = keeper.upgrade() {
                keeper.wake();
            }
        };
        state.timer = Some(self.caller.timers.at(moment_ms, Box::new(job)));
    }

    fn wake(self: &Arc<Self>) {
        let mut state = locked(&self.state);
        if state.is_stopped {
            return;
        }
        if let Some(loss) = self.hold.find_loss() {
            drop(state);
            self.lose(loss);
            return;
        }
        let is_due = now_ms() >= self.hold.grant().renew_at_ms;
        let renews = is_due && !state.is_renewing && !state.is_last;
        state.is_renewing |= renews;
        self.schedule(&mut state);
        drop(state);
        if renews {
            let talk = Extend::new(&self.caller.rules, Arc::clone(&self.hold), None);
            let keeper = Arc::clone(self);
            let done = move |ran| keeper.renewed(ran);
            let call = self.caller.begin(talk, &self.cancel, done);
            self.caller.send_soon(call);
        }
    }

    fn renewed(self: &Arc<Self>, ran: Ran<Extend>) {
        let result = match ran {
            Ran::Done(result) => result,
            Ran::Stopped { .. } => return, // the lock was released meanwhile
        };
        if let Err(loss) = result {
            self.lose(loss);
            return;
        }
        let mut state = locked(&self.state);
        state.is_renewing = false;
        state.is_last = matches!(result, Ok(false));
        self.schedule(&mut state);
    }
}

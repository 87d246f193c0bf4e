// SPDX-License-Identifier: MIT
use std::fmt;
use std::sync::{mpsc, Arc};
use std::time::Duration;

use crate::caller::{Caller, Ran};
use crate::cancel::Cancel;
use crate::client::LAST;
use crate::coalesce::Call;
use crate::error::Error;
use crate::grant::{Grant, Hold};
use crate::keeper::{Keeper, OnLoss};
use crate::talk::{duration, Acquire, Extend, GiveBack, Release};
use crate::wanted::Wanted;

/// A lock to ask for: `Client::lock` makes it.
#[derive(Clone)]
#[must_use = "it asks for nothing before acquire()"]
pub struct LockRequest {
    pub(crate) caller: Arc<Caller>,
    pub(crate) wanted: Wanted,
    pub(crate) on_loss: Option<OnLoss>,
    pub(crate) cancel: Cancel,
}

pub(crate) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl LockRequest {
    pub(crate) fn new(caller: Arc<Caller>, resources: Vec<String>) -> Self {
        LockRequest {
            caller,
            wanted: Wanted {
                resources,
                ..Wanted::default()
            },
            on_loss: None,
            cancel: Cancel::new(),
        }
    }

    /// How long until the lock of a dead holder expires; the server's default if
    /// omitted.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.wanted.ttl_ms = Some(ms(ttl));
        self
    }

    /// How long to wait for the lock, and for a server that works; without a limit if
    /// omitted.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wanted.wait_ms = Some(wait.as_secs_f64() * 1000.0);
        self
    }

    /// A label, shown to clients that find the lock held.
    pub fn owner(mut self, owner: &str) -> Self {
        self.wanted.owner = Some(owner.to_owned());
        self
    }

    /// At most `limit` permits of the resource are held at once; takes `count` of them.
    pub fn permits(mut self, limit: u64, count: u64) -> Self {
        self.wanted.permits = Some((limit, count));
        self
    }

    /// As a reader, beside other readers.
    pub fn shared(mut self) -> Self {
        self.wanted.is_shared = true;
        self
    }

    /// Called once if the lock is lost, by a thread of the client, at once: also while a
    /// server takes its time.
    pub fn on_loss(mut self, call: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.on_loss = Some(Arc::new(call));
        self
    }

    /// Gives up the acquire when this is cancelled. What it may have been granted is
    /// given back, which `acquire` waits for, two seconds at most. After that the client
    /// goes on with it in the background.
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Acquires the lock. Fails with [`Error::Held`] if somebody else holds it until the
    /// wait has passed.
    pub fn acquire(&self) -> Result<Guard, Error> {
        self.wanted.check()?;
        let (tell, told) = mpsc::channel();
        let gives_up = tell.clone();
        let done = move |result| drop(tell.send(Some(result)));
        let call = self.begin(&self.cancel, done);
        let _watching = self.cancel.on_cancel(move || drop(gives_up.send(None)));
        self.caller.send_here(call);
        match told.recv() {
            Ok(Some(result)) => result,
            // after a time-out it goes on in the background
            _ => match told.recv_timeout(LAST) {
                Ok(Some(result)) => result,
                _ => Err(Error::Cancelled),
            },
        }
    }

    /// Begins to acquire it. What it may have been granted is given back if it is
    /// cancelled; `done` is called after that, and must not wait. A guard that nobody
    /// takes is released.
    pub(crate) fn begin(
        &self,
        cancel: &Cancel,
        done: impl FnOnce(Result<Guard, Error>) + Send + 'static,
    ) -> Option<Call> {
        let request = self.clone();
        let last = self.caller.workers.last();
        let talk = Acquire::new(&self.caller.rules, self.wanted.clone());
        self.caller.begin(talk, cancel, move |ran| match ran {
            Ran::Done(result) => done(result.map(|grant| request.guard(grant))),
            Ran::Stopped { talk, is_open } => {
                if !is_open && !talk.attempt.may_be_granted {
                    return done(Err(Error::Cancelled));
                }
                let caller = request.caller;
                let rules = caller.rules.clone();
                let talk = GiveBack::new(&rules, talk.attempt);
                caller.start(talk, move |result| {
                    rules.warn_of(result);
                    done(Err(Error::Cancelled));
                    drop(last);
                });
            }
        })
    }

    /// Acquires the lock if it is free, and does not wait; `None`: somebody else holds
    /// it.
    pub fn try_acquire(&self) -> Result<Option<Guard>, Error> {
        match self.clone().wait(Duration::ZERO).acquire() {
            Err(Error::Held { .. }) => Ok(None),
            result => result.map(Some),
        }
    }

    fn guard(&self, grant: Grant) -> Guard {
        let hold = Arc::new(Hold::new(self.wanted.resources.clone(), grant));
        let caller = Arc::clone(&self.caller);
        let keeper = Keeper::begin(caller, Arc::clone(&hold), self.on_loss.clone());
        Guard {
            caller: Arc::clone(&self.caller),
            hold,
            keeper,
            is_released: false,
        }
    }
}

/// A lock that is held. Threads of the client extend it until it is released.
///
/// [`release`](Guard::release) says whether the lock was lost. A guard that is dropped is
/// released in the background: the drop does not wait for a server, and an error is a
/// warning of the client. The last [`Client`](crate::Client) waits for that when it is
/// dropped, two seconds at most. A lock that is not released expires with its TTL.
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard {
    pub(crate) caller: Arc<Caller>,
    pub(crate) hold: Arc<Hold>,
    pub(crate) keeper: Arc<Keeper>,
    is_released: bool,
}

impl Guard {
    /// Fails with [`Error::Lost`] if the lock is lost, by the clock of this machine. Call
    /// it right before each step that cannot be undone. No server is asked.
    pub fn check(&self) -> Result<(), Error> {
        self.hold.find_loss().map_or(Ok(()), Err)
    }

    /// How long you may work under it; zero: it is lost. No server is asked.
    pub fn remaining(&self) -> Duration {
        duration(self.hold.remaining_ms())
    }

    /// A storage should refuse lower ones than the highest it has seen.
    pub fn fencing_token(&self) -> u64 {
        self.hold.grant().fencing_token
    }

    /// The numbers of its permits.
    pub fn slots(&self) -> Vec<u64> {
        self.hold.grant().slots
    }

    /// Whether it is shared with other readers now.
    pub fn is_shared(&self) -> bool {
        self.hold.grant().is_shared
    }

    /// Extends it to so long from now on; later extends use this TTL, too.
    pub fn extend(&self, ttl: Duration) -> Result<(), Error> {
        let hold = Arc::clone(&self.hold);
        self.change(Extend::new(&self.caller.rules, hold, Some(ms(ttl))))
    }

    /// Makes an exclusive lock a shared one: other readers may join from now on. Stop
    /// writing before.
    pub fn downgrade(&self) -> Result<(), Error> {
        let hold = Arc::clone(&self.hold);
        self.change(Extend::downgrade(&self.caller.rules, hold))
    }

    fn change(&self, talk: Extend) -> Result<(), Error> {
        changed(&self.keeper, self.caller.run(talk))
    }

    /// Lets others have the lock. Fails with [`Error::Lost`] if it was lost before: then
    /// others may have worked at the same time. Fails with [`Error::NotReleased`] if no
    /// server confirms it.
    pub fn release(mut self) -> Result<(), Error> {
        let (talk, loss) = self.end();
        let result = self.caller.run(talk);
        loss.map_or(result, Err)
    }

    /// From now on it cannot be lost. Returns what releases it, and the loss before. A
    /// lost lock is released, too: of several resources, some may be locked.
    fn end(&mut self) -> (Release, Option<Error>) {
        self.is_released = true;
        self.keeper.stop();
        let loss = self.hold.find_loss();
        let talk = Release::new(&self.caller.rules, Arc::clone(&self.hold));
        (talk, loss)
    }

    /// Releases it in the background.
    pub(crate) fn start_release(&mut self, done: impl FnOnce(Result<(), Error>) + Send + 'static) {
        let (talk, loss) = self.end();
        let last = self.caller.workers.last();
        self.caller.start(talk, move |result| {
            done(loss.map_or(result, Err));
            drop(last);
        });
    }
}

/// After an extend that was asked for.
pub(crate) fn changed(keeper: &Arc<Keeper>, result: Result<bool, Error>) -> Result<(), Error> {
    match result {
        Err(error @ Error::Lost(_)) => Err(keeper.lose(error)),
        Err(error) => Err(error),
        Ok(_) => {
            keeper.moved();
            Ok(())
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.is_released {
            let rules = self.caller.rules.clone();
            self.start_release(move |result| rules.warn_of(result));
        }
    }
}

impl fmt::Debug for Guard {
    /// Without the token, a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("name", &self.hold.name)
            .field("fencing_token", &self.fencing_token())
            .finish_non_exhaustive()
    }
}

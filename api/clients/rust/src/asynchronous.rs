// SPDX-License-Identifier: MIT
//! Methods for async programs, in any runtime. Threads of the client send the requests,
//! and wake the task. What a task has begun belongs to the client: a future that is
//! dropped takes nothing with it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::caller::{Caller, Ran};
use crate::cancel::Cancel;
use crate::client::{held, Client, HeldLock, Watch};
use crate::error::Error;
use crate::lock::{changed, ms, Guard, LockRequest};
use crate::talk::{Ask, Extend, Talk};

/// Gives up what a future has begun when the future is dropped.
struct EndsWithIt(Cancel);

impl Drop for EndsWithIt {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

fn ended() -> Error {
    Error::Unavailable("a thread of the client has ended".into())
}

impl Caller {
    /// Runs a talk, and gives it up if the future is dropped or this is cancelled.
    async fn run_async<T>(self: &Arc<Self>, talk: T, cancel: &Cancel) -> Ran<T>
    where
        T: Talk + Send + 'static,
        T::Out: Send,
    {
        let (tell, told) = oneshot::channel();
        let own = EndsWithIt(Cancel::new());
        let call = self.begin(talk, &own.0, move |ran| drop(tell.send(ran)));
        let both = own.0.clone();
        let _watching = cancel.on_cancel(move || both.cancel());
        self.send(call);
        told.await.unwrap_or_else(|_| Ran::Done(Err(ended())))
    }
}

/// With the feature `tokio`.
impl LockRequest {
    /// [`acquire`](LockRequest::acquire) for async programs.
    ///
    /// The future may be dropped at any time, as by `select!` or a time-out: the client
    /// then gives back in the background what it may have been granted. If the request
    /// goes with others, that is when the response has come. After a
    /// [`cancel`](LockRequest::cancel), the future ends once the lock is given back.
    ///
    /// While it waits for a lock that is held, it takes a thread of the client.
    pub async fn acquire_async(&self) -> Result<Guard, Error> {
        self.wanted.check()?;
        let (tell, told) = oneshot::channel();
        let own = EndsWithIt(Cancel::new());
        // a guard that nobody takes is dropped, and so is released
        let call = self.begin(&own.0, move |result| drop(tell.send(result)));
        let both = own.0.clone();
        let _watching = self.cancel.on_cancel(move || both.cancel());
        self.caller.send(call);
        told.await.unwrap_or_else(|_| Err(ended()))
    }

    /// [`try_acquire`](LockRequest::try_acquire) for async programs; the future may be
    /// dropped at any time.
    pub async fn try_acquire_async(&self) -> Result<Option<Guard>, Error> {
        match self.clone().wait(Duration::ZERO).acquire_async().await {
            Err(Error::Held { .. }) => Ok(None),
            result => result.map(Some),
        }
    }
}

/// With the feature `tokio`.
impl Guard {
    /// Ends when the lock is lost: the [`Error::Lost`] that [`check`](Guard::check)
    /// fails with from then on.
    pub async fn lost(&self) -> Error {
        let notified = self.keeper.lost.notified();
        if let Some(loss) = self.hold.find_loss() {
            return loss;
        }
        notified.await;
        self.hold.lose(self.hold.late()) // or the loss that there was
    }

    /// [`extend`](Guard::extend) for async programs. If the future is dropped, the
    /// client goes on with it in the background.
    pub async fn extend_async(&self, ttl: Duration) -> Result<(), Error> {
        let hold = Arc::clone(&self.hold);
        let talk = Extend::new(&self.caller.rules, hold, Some(ms(ttl)));
        self.change_async(talk).await
    }

    /// [`downgrade`](Guard::downgrade) for async programs. If the future is dropped, the
    /// client goes on with it in the background.
    pub async fn downgrade_async(&self) -> Result<(), Error> {
        let talk = Extend::downgrade(&self.caller.rules, Arc::clone(&self.hold));
        self.change_async(talk).await
    }

    async fn change_async(&self, talk: Extend) -> Result<(), Error> {
        let (tell, told) = oneshot::channel();
        let keeper = Arc::clone(&self.keeper);
        let done = move |result| drop(tell.send(changed(&keeper, result)));
        self.caller.start(talk, done);
        told.await.unwrap_or_else(|_| Err(ended()))
    }

    /// [`release`](Guard::release) for async programs. If the future is dropped, the
    /// client goes on with it in the background, and an error is a warning. A future
    /// that is dropped before it was polled is a guard that is dropped.
    pub async fn release_async(mut self) -> Result<(), Error> {
        let (tell, told) = oneshot::channel();
        let rules = self.caller.rules.clone();
        self.start_release(move |result| {
            if let Err(unread) = tell.send(result) {
                rules.warn_of(unread);
            }
        });
        told.await.unwrap_or_else(|_| Err(ended()))
    }
}

/// With the feature `tokio`.
impl Client {
    /// [`get`](Client::get) for async programs; the future may be dropped at any time.
    pub async fn get_async(&self, resource: &str) -> Result<Option<HeldLock>, Error> {
        let talk = Ask::holder(&self.caller.rules, resource);
        match self.caller.run_async(talk, &Cancel::new()).await {
            Ran::Done(result) => Ok(held(&result?)),
            Ran::Stopped { .. } => Err(Error::Cancelled), // nobody has its Cancel
        }
    }
}

/// With the feature `tokio`.
impl Watch {
    /// The next holder, for async programs. If the future is dropped, the next one
    /// misses nothing.
    pub async fn next_async(&mut self) -> Option<Result<Option<HeldLock>, Error>> {
        let ran = self.caller.run_async(self.talk(), &self.cancel).await;
        self.took(ran)
    }
}

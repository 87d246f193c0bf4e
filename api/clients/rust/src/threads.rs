// SPDX-License-Identifier: MIT
//! The threads of a client: one for what is due at a moment, and some for what waits.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::clock::{now_ms, LONGEST_SLEEP_MS};
use crate::sync::locked;

type Job = Box<dyn FnOnce() + Send>;

/// A job that may be cancelled: its moment in microseconds, and a number.
pub(crate) type Timer = (u64, u64);

#[derive(Default)]
struct Moments {
    jobs: BTreeMap<Timer, Job>,
    count: u64,
    is_running: bool,
    is_closed: bool,
}

/// Calls jobs, each at its moment of `clock`. They must not wait for anything.
#[derive(Default)]
pub(crate) struct Timers {
    moments: Mutex<Moments>,
    moved: Condvar,
}

impl Timers {
    pub fn at(self: &Arc<Self>, moment_ms: f64, job: Job) -> Timer {
        let mut moments = locked(&self.moments);
        moments.count += 1;
        let timer = ((moment_ms.max(0.0) * 1000.0) as u64, moments.count);
        moments.jobs.insert(timer, job);
        if !moments.is_running && !moments.is_closed {
            let timers = Arc::clone(self);
            moments.is_running = begin("redlockd-timers", move || timers.run());
        } else if moments.jobs.keys().next() == Some(&timer) {
            self.moved.notify_one();
        }
        timer
    }

    /// The job is not called from now on, but may be under way.
    pub fn cancel(&self, timer: Timer) {
        locked(&self.moments).jobs.remove(&timer);
    }

    pub fn close(&self) {
        locked(&self.moments).is_closed = true;
        self.moved.notify_one();
    }

    fn run(&self) {
        while let Some(job) = self.next() {
            call(job);
        }
    }

    fn next(&self) -> Option<Job> {
        let mut moments = locked(&self.moments);
        loop {
            if moments.is_closed {
                return None;
            }
            let first = moments.jobs.keys().next().copied();
            let left_ms = first.map_or(LONGEST_SLEEP_MS, |at| at.0 as f64 / 1000.0 - now_ms());
            if let Some(first) = first.filter(|_| left_ms <= 0.0) {
                return moments.jobs.remove(&first);
            }
            let wait_ms = left_ms.clamp(0.01, LONGEST_SLEEP_MS);
            let wait = Duration::from_secs_f64(wait_ms / 1000.0);
            moments = match first {
                Some(_) => {
                    let woken = self.moved.wait_timeout(moments, wait);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let woken = self.moved.wait(moments);
                    woken.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }
}

/// Then a thread without work ends.
const IDLE: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    count: usize,
    idle: usize,
    /// What should be done before the program ends.
    last: usize,
}

/// As many as there are requests under way, and callbacks of the user.
#[derive(Default)]
pub(crate) struct Workers {
    queue: Mutex<Queue>,
    asked: Condvar,
    done: Condvar,
}

impl Workers {
    /// Calls the job in a thread, soon. Returns false if there can be no thread: then
    /// the job is dropped.
    pub fn call(self: &Arc<Self>, job: Job) -> bool {
        let mut queue = locked(&self.queue);
        queue.jobs.push_back(job);
        if queue.idle >= queue.jobs.len() {
            self.asked.notify_one();
            return true;
        }
        let workers = Arc::clone(self);
        if begin("redlockd-worker", move || workers.run()) {
            queue.count += 1;
        } else if queue.count == 0 {
            let dropped = queue.jobs.pop_back();
            drop(queue); // the job may use it when it is dropped
            return dropped.is_none();
        }
        true
    }

    /// `wait_for_last` waits until it is dropped.
    pub fn last(self: &Arc<Self>) -> Last {
        locked(&self.queue).last += 1;
        Last(Arc::clone(self))
    }

    pub fn wait_for_last(&self, limit: Duration) {
        let queue = locked(&self.queue);
        let waited = self
            .done
            .wait_timeout_while(queue, limit, |queue| queue.last > 0);
        drop(waited);
    }

    fn run(&self) {
        while let Some(job) = self.take() {
            call(job);
        }
    }

    fn take(&self) -> Option<Job> {
        let mut queue = locked(&self.queue);
        if queue.jobs.is_empty() {
            queue.idle += 1;
            let woken = self
                .asked
                .wait_timeout_while(queue, IDLE, |queue| queue.jobs.is_empty());
            queue = woken.unwrap_or_else(PoisonError::into_inner).0;
            queue.idle -= 1;
        }
        let job = queue.jobs.pop_front();
        if job.is_none() {
            queue.count -= 1;
        }
        job
    }
}

/// Something that should be done before the program ends, and is under way.
pub(crate) struct Last(Arc<Workers>);

impl Drop for Last {
    fn drop(&mut self) {
        locked(&self.0.queue).last -= 1;
        self.0.done.notify_all();
    }
}

/// A job is the user's callback, too: its panic is reported, and ends nothing else.
fn call(job: Job) {
    let _ = catch_unwind(AssertUnwindSafe(job));
}

fn begin(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    thread::Builder::new().name(name.into()).spawn(run).is_ok()
}

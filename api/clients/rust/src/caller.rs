// SPDX-License-Identifier: MIT
//! Carries out talks, over connections that are kept. Threads share it.

use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc, Mutex};

use crate::answer::{Answer, Failure, Request};
use crate::cancel::Cancel;
use crate::clock::now_ms;
use crate::coalesce::{Call, Flight, Queue};
use crate::error::Error;
use crate::http::{serialized, Connection, Response, Target};
use crate::identity::Identity;
use crate::sync::locked;
use crate::talk::{Probe, Rules, Step, Talk};
use crate::threads::{Timers, Workers};

/// A request that has no response so long after it should have one marks its replica:
/// others ask another one meanwhile.
const OVERDUE_MS: f64 = 500.0;
const KEPT_MS: f64 = 60_000.0;

/// How a talk ended.
pub(crate) enum Ran<T: Talk> {
    Done(Result<T::Out, Error>),
    /// It was given up; whether a request was under way then.
    Stopped {
        talk: T,
        is_open: bool,
    },
}

/// A talk that has begun. `done` is called once, by any thread.
struct Run<T, F> {
    talk: T,
    cancel: Cancel,
    done: F,
}

pub(crate) struct Caller {
    pub rules: Rules,
    targets: Vec<Target>,
    identity: Identity,
    idle: Mutex<Vec<Vec<Connection>>>,
    queue: Mutex<Queue>,
    pub timers: Arc<Timers>,
    pub workers: Arc<Workers>,
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.timers.close();
    }
}

impl Caller {
    pub fn new(rules: Rules, targets: Vec<Target>, identity: Identity) -> Self {
        Caller {
            idle: Mutex::new(targets.iter().map(|_| Vec::new()).collect()),
            rules,
            targets,
            identity,
            queue: Mutex::default(),
            timers: Arc::default(),
            workers: Arc::default(),
        }
    }

    /// Begins a talk, and waits for nothing. Returns its first request, which is to be
    /// sent. What follows is done by threads of the client. `done` must not wait.
    pub fn begin<T, F>(self: &Arc<Self>, talk: T, cancel: &Cancel, done: F) -> Option<Call>
    where
        T: Talk + Send + 'static,
        F: FnOnce(Ran<T>) + Send + 'static,
    {
        let cancel = cancel.clone();
        self.go_on(Run { talk, cancel, done }, None)
    }

    fn go_on<T, F>(self: &Arc<Self>, mut run: Run<T, F>, answer: Option<Answer>) -> Option<Call>
    where
        T: Talk + Send + 'static,
        F: FnOnce(Ran<T>) + Send + 'static,
    {
        let is_cancelled = run.cancel.is_cancelled();
        let failure = answer.as_ref().and_then(|answer| answer.failure);
        let is_repeated = answer.as_ref().map_or(false, |answer| answer.is_repeated);
        let stopped = |talk, is_open| Ran::Stopped { talk, is_open };
        if is_cancelled && failure.is_some() {
            let is_open = failure == Some(Failure::Lost) || is_repeated;
            (run.done)(stopped(run.talk, is_open));
            return None;
        }
        match run.talk.next(answer) {
            Step::Done(result) => (run.done)(Ran::Done(result)),
            _ if is_cancelled => (run.done)(stopped(run.talk, false)),
            Step::Send(request) => return Some(self.call(request, run)),
            Step::Pause(ms) => self.pause(ms, run),
        }
        None
    }

    fn call<T, F>(self: &Arc<Self>, request: Request, run: Run<T, F>) -> Call
    where
        T: Talk + Send + 'static,
        F: FnOnce(Ran<T>) + Send + 'static,
    {
        let number = locked(&self.queue).next_number();
        let cancel = run.cancel.clone();
        let caller = Arc::clone(self);
        let mut call = Call::new(number, request, cancel.clone(), move |answer| {
            let next = caller.go_on(run, Some(answer));
            caller.send(next);
        });
        let caller = Arc::clone(self);
        call.watching = Some(cancel.on_cancel(move || {
            let call = locked(&caller.queue).take_out(number);
            if let Some(call) = call {
                let words = "it was given up".into();
                call.answer(Answer::failed(Failure::Unsent, words, 0, 0.0));
            }
        }));
        call
    }

    fn pause<T, F>(self: &Arc<Self>, ms: f64, run: Run<T, F>)
    where
        T: Talk + Send + 'static,
        F: FnOnce(Ran<T>) + Send + 'static,
    {
        let cancel = run.cancel.clone();
        let paused = Arc::new(Mutex::new(Some(run)));
        let caller = Arc::clone(self);
        // by the timer or by a cancel, whichever comes first
        let go_on = move || {
            let run = locked(&paused).take();
            if let Some(run) = run {
                let next = caller.go_on(run, None);
                caller.send_soon(next);
            }
        };
        let watching = cancel.on_cancel(go_on.clone());
        let job = move || {
            go_on();
            drop(watching);
        };
        self.timers.at(now_ms() + ms, Box::new(job));
    }

    /// Begins a talk that nobody can give up, and sends its requests in the background.
    pub fn start<T>(
        self: &Arc<Self>,
        talk: T,
        done: impl FnOnce(Result<T::Out, Error>) + Send + 'static,
    ) where
        T: Talk + Send + 'static,
    {
        let call = self.begin(talk, &Cancel::new(), move |ran| match ran {
            Ran::Done(result) => done(result),
            Ran::Stopped { .. } => done(Err(Error::Cancelled)), // nobody has its Cancel
        });
        self.send(call);
    }

    /// Runs a talk to its end.
    pub fn run<T>(self: &Arc<Self>, talk: T) -> Result<T::Out, Error>
    where
        T: Talk + Send + 'static,
        T::Out: Send,
    {
        match self.run_until(talk, &Cancel::new()) {
            Ran::Done(result) => result,
            Ran::Stopped { .. } => Err(Error::Cancelled), // nobody has its Cancel
        }
    }

    pub fn run_until<T>(self: &Arc<Self>, talk: T, cancel: &Cancel) -> Ran<T>
    where
        T: Talk + Send + 'static,
        T::Out: Send,
    {
        let (tell, told) = mpsc::channel();
        let call = self.begin(talk, cancel, move |ran| drop(tell.send(ran)));
        self.send_here(call);
        told.recv().unwrap_or_else(|_| {
            let words = "a thread of the client has ended".into();
            Ran::Done(Err(Error::Unavailable(words)))
        })
    }

    // ---- requests: alone, or with others

    /// Sends it by this thread, unless it goes with others.
    pub fn send_here(self: &Arc<Self>, call: Option<Call>) {
        let flights = locked(&self.queue).add(call.into_iter().collect());
        for flight in flights {
            let next = self.fly(flight);
            self.launch(next);
        }
    }

    /// Sends it by threads of the client.
    pub fn send(self: &Arc<Self>, call: Option<Call>) {
        let flights = locked(&self.queue).add(call.into_iter().collect());
        self.launch(flights);
    }

    /// Sends it together with those of the same moment: for `timers`, which call the
    /// jobs that are due one after the other.
    pub fn send_soon(self: &Arc<Self>, call: Option<Call>) {
        let call = match call {
            Some(call) => call,
            None => return,
        };
        let is_first = locked(&self.queue).add_soon(call);
        if is_first {
            let caller = Arc::clone(self);
            let job = move || {
                let flights = locked(&caller.queue).add_soon_ones();
                caller.launch(flights);
            };
            self.timers.at(now_ms(), Box::new(job));
        }
    }

    fn launch(self: &Arc<Self>, mut flights: Vec<Flight>) {
        while let Some(flight) = flights.pop() {
            let number = flight.number;
            let caller = Arc::clone(self);
            let is_sent = self.workers.call(Box::new(move || {
                let mut next = vec![flight];
                while let Some(flight) = next.pop() {
                    caller.launch(next);
                    next = caller.fly(flight);
                }
            }));
            if !is_sent {
                flights.extend(locked(&self.queue).leave(number));
            }
        }
    }

    /// Sends a request, and tells the answer. Returns what is to be sent next.
    fn fly(self: &Arc<Self>, flight: Flight) -> Vec<Flight> {
        let number = flight.number;
        let answer = self.ask(&flight.request(), number, flight.cancel());
        let words = flight.is_batch.then(|| answer.words()).unwrap_or_default();
        let (arrived, again) = flight.land(answer);
        if !again.is_empty() {
            let text = format!("POST /batch: operations go alone ({words})");
            self.rules.warn(&text);
        }
        for (call, answer) in arrived {
            call.answer(answer); // what it asks next goes with what was collected
        }
        let mut queue = locked(&self.queue);
        queue.add_again(again);
        queue.leave(number)
    }

    fn overdue(self: &Arc<Self>, number: u64) {
        let flights = locked(&self.queue).leave(number);
        self.launch(flights);
    }

    /// Closes the connections that are idle.
    pub fn close(&self) {
        for idle in locked(&self.idle).iter_mut() {
            idle.clear();
        }
    }

    fn ask(self: &Arc<Self>, request: &Request, number: u64, cancel: Option<&Cancel>) -> Answer {
        let replica = request.replica.unwrap_or_else(|| self.choose());
        let used = self.identity.token();
        let answer = self.exchange(request, replica, &used, number, cancel);
        if answer.has_401() && self.identity.refresh(&used) && answer.status == 401 {
            let token = self.identity.token();
            let mut again = self.exchange(request, replica, &token, number, cancel);
            again.is_repeated |= answer.is_repeated;
            return again;
        }
        answer
    }

    fn choose(self: &Arc<Self>) -> usize {
        let (replica, due) = self.rules.replicas.choose();
        for replica in due {
            let rules = self.rules.clone();
            self.start(Probe { rules, replica }, drop); // it reports its end itself
        }
        replica
    }

    fn exchange(
        self: &Arc<Self>,
        request: &Request,
        replica: usize,
        token: &Option<String>,
        number: u64,
        cancel: Option<&Cancel>,
    ) -> Answer {
        let sent_ms = now_ms();
        let is_overdue = Arc::new(AtomicBool::new(false));
        let timer = {
            let is_overdue = Arc::clone(&is_overdue);
            let caller = Arc::clone(self);
            let job = move || {
                is_overdue.store(true, Ordering::SeqCst);
                caller.rules.replicas.avoid(replica);
                caller.overdue(number);
            };
            let overdue_ms = sent_ms + request.wait_ms + OVERDUE_MS;
            self.timers.at(overdue_ms, Box::new(job))
        };
        let target = &self.targets[replica];
        let bearer = token.as_ref().map(|token| format!("Bearer {token}"));
        let authorization = bearer.as_ref().or(target.authorization.as_ref());
        let bytes = serialized(target, request, authorization.map(String::as_str));
        let (result, is_repeated) = self.over_connection(request, replica, &bytes, cancel);
        self.timers.cancel(timer);
        let response = match result {
            Ok(response) => response,
            Err((failure, detail)) => {
                let mut answer = Answer::failed(failure, detail, replica, sent_ms);
                answer.is_repeated = is_repeated;
                return answer;
            }
        };
        let retry_after = response.header("Retry-After");
        let mut answer = Answer::read(response.status, &response.body, retry_after);
        answer.replica = replica;
        answer.sent_ms = sent_ms;
        answer.is_repeated = is_repeated;
        answer.content_type = response.header("Content-Type").unwrap_or("").to_owned();
        if answer.is_good() && !is_overdue.load(Ordering::SeqCst) {
            self.rules.replicas.works(replica);
        }
        answer
    }

    /// Also returns whether the request may have arrived before: over a kept
    /// connection that had ended.
    fn over_connection(
        &self,
        request: &Request,
        replica: usize,
        bytes: &[u8],
        cancel: Option<&Cancel>,
    ) -> (Result<Response, (Failure, String)>, bool) {
        let mut is_repeated = false;
        if let Some(mut kept) = self.take(replica) {
            match self.send_over(&mut kept, request, bytes, cancel) {
                Ok(response) => {
                    self.keep(replica, kept);
                    return (Ok(response), false);
                }
                // the server may have closed it before it got the request
                Err(error)
                    if !kept.has_begun
                        && error.kind() != ErrorKind::TimedOut
                        && !cancel.map_or(false, Cancel::is_cancelled) =>
                {
                    is_repeated = true;
                }
                Err(error) => return (Err((Failure::Lost, error.to_string())), false),
            }
        }
        (
            self.over_another(request, replica, bytes, cancel),
            is_repeated,
        )
    }

    fn over_another(
        &self,
        request: &Request,
        replica: usize,
        bytes: &[u8],
        cancel: Option<&Cancel>,
    ) -> Result<Response, (Failure, String)> {
        let until_ms = now_ms() + request.timeout_ms;
        let target = &self.targets[replica];
        let mut connection = Connection::open(target, &self.identity.tls, until_ms)?;
        let response = self
            .send_over(&mut connection, request, bytes, cancel)
            .map_err(|error| (Failure::Lost, error.to_string()))?;
        self.keep(replica, connection);
        Ok(response)
    }

    fn send_over(
        &self,
        connection: &mut Connection,
        request: &Request,
        bytes: &[u8],
        cancel: Option<&Cancel>,
    ) -> io::Result<Response> {
        let _watching = match cancel {
            Some(cancel) => {
                let socket = connection.socket()?;
                // it fails if the other side has closed the connection
                let call = move || drop(socket.shutdown(Shutdown::Both));
                Some(cancel.on_cancel(call))
            }
            None => None,
        };
        let write_until_ms = now_ms() + request.timeout_ms;
        let read_until_ms = write_until_ms + request.wait_ms;
        connection.exchange(bytes, write_until_ms, read_until_ms)
    }

    /// One that its server has not closed meanwhile.
    fn take(&self, replica: usize) -> Option<Connection> {
        loop {
            let mut connection = self.pop(replica)?;
            if !connection.has_ended() {
                return Some(connection);
            }
        }
    }

    fn pop(&self, replica: usize) -> Option<Connection> {
        let mut idle = locked(&self.idle);
        let oldest_ms = now_ms() - KEPT_MS;
        idle[replica].retain(|connection| connection.idle_since_ms > oldest_ms);
        idle[replica].pop()
    }

    fn keep(&self, replica: usize, mut connection: Connection) {
        if connection.is_kept {
            connection.idle_since_ms = now_ms();
            locked(&self.idle)[replica].push(connection);
        }
    }
}

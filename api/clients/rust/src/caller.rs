//! Carries out talks, over connections that are kept. Threads share it.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::answer::{Answer, Failure, Request};
use crate::cancel::Cancel;
use crate::clock::now_ms;
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
pub(crate) enum Ran<T> {
    Done(Result<T, Error>),
    /// It was given up; whether a request was under way then.
    Stopped {
        is_open: bool,
    },
}

pub(crate) struct Caller {
    pub rules: Rules,
    targets: Vec<Target>,
    identity: Identity,
    idle: Mutex<Vec<Vec<Connection>>>,
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
            timers: Arc::default(),
            workers: Arc::default(),
        }
    }

    /// Runs a talk to its end.
    pub fn run<T: Talk>(self: &Arc<Self>, talk: &mut T) -> Result<T::Out, Error> {
        match self.run_until(talk, &Cancel::new()) {
            Ran::Done(result) => result,
            Ran::Stopped { .. } => Err(Error::Cancelled), // nobody has its Cancel
        }
    }

    pub fn run_until<T: Talk>(self: &Arc<Self>, talk: &mut T, cancel: &Cancel) -> Ran<T::Out> {
        let mut answer = None;
        loop {
            let step = match talk.next(answer.take()) {
                Step::Done(result) => return Ran::Done(result),
                step => step,
            };
            if cancel.is_cancelled() {
                return Ran::Stopped { is_open: false };
            }
            match step {
                Step::Send(request) => {
                    let got = self.ask(&request, cancel);
                    if got.failure.is_some() && cancel.is_cancelled() {
                        let is_open = got.failure == Some(Failure::Lost);
                        return Ran::Stopped { is_open };
                    }
                    answer = Some(got);
                }
                Step::Pause(ms) => cancel.sleep(ms),
                Step::Done(_) => unreachable!("it has returned"),
            }
        }
    }

    /// Closes the connections that are idle.
    pub fn close(&self) {
        for idle in locked(&self.idle).iter_mut() {
            idle.clear();
        }
    }

    fn ask(self: &Arc<Self>, request: &Request, cancel: &Cancel) -> Answer {
        let replica = request.replica.unwrap_or_else(|| self.choose());
        let used = self.identity.token();
        let answer = self.exchange(request, replica, &used, cancel);
        if answer.status == 401 && self.identity.refresh(&used) {
            return self.exchange(request, replica, &self.identity.token(), cancel);
        }
        answer
    }

    fn choose(self: &Arc<Self>) -> usize {
        let (replica, due) = self.rules.replicas.choose();
        for replica in due {
            let caller = Arc::clone(self);
            self.workers.call(Box::new(move || {
                let rules = caller.rules.clone();
                // it reports its end itself
                let _ = caller.run(&mut Probe { rules, replica });
            }));
        }
        replica
    }

    fn exchange(
        self: &Arc<Self>,
        request: &Request,
        replica: usize,
        token: &Option<String>,
        cancel: &Cancel,
    ) -> Answer {
        let sent_ms = now_ms();
        let is_overdue = Arc::new(AtomicBool::new(false));
        let timer = {
            let is_overdue = Arc::clone(&is_overdue);
            let replicas = Arc::clone(&self.rules.replicas);
            let job = move || {
                is_overdue.store(true, Ordering::SeqCst);
                replicas.avoid(replica);
            };
            let overdue_ms = sent_ms + request.wait_ms + OVERDUE_MS;
            self.timers.at(overdue_ms, Box::new(job))
        };
        let target = &self.targets[replica];
        let bearer = token.as_ref().map(|token| format!("Bearer {token}"));
        let authorization = bearer.as_ref().or(target.authorization.as_ref());
        let bytes = serialized(target, request, authorization.map(String::as_str));
        let result = self.over_connection(request, replica, &bytes, cancel);
        self.timers.cancel(timer);
        let (response, is_repeated) = match result {
            Ok(got) => got,
            Err((failure, detail)) => return Answer::failed(failure, detail, replica, sent_ms),
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

    /// Returns the response, and whether the request may have arrived twice.
    fn over_connection(
        &self,
        request: &Request,
        replica: usize,
        bytes: &[u8],
        cancel: &Cancel,
    ) -> Result<(Response, bool), (Failure, String)> {
        let mut is_repeated = false;
        if let Some(mut kept) = self.take(replica) {
            match self.send(&mut kept, request, bytes, cancel) {
                Ok(response) => {
                    self.keep(replica, kept);
                    return Ok((response, false));
                }
                // the server may have closed it before it got the request
                Err(error)
                    if !kept.has_begun
                        && error.kind() != ErrorKind::TimedOut
                        && !cancel.is_cancelled() =>
                {
                    is_repeated = true;
                }
                Err(error) => return Err((Failure::Lost, error.to_string())),
            }
        }
        let until_ms = now_ms() + request.timeout_ms;
        let target = &self.targets[replica];
        let opened = Connection::open(target, &self.identity.tls, until_ms);
        let mut connection = match opened {
            Ok(connection) => connection,
            // the first one may have arrived
            Err((Failure::Unsent, words)) if is_repeated => return Err((Failure::Lost, words)),
            Err(failed) => return Err(failed),
        };
        let response = self
            .send(&mut connection, request, bytes, cancel)
            .map_err(|error| (Failure::Lost, error.to_string()))?;
        self.keep(replica, connection);
        Ok((response, is_repeated))
    }

    fn send(
        &self,
        connection: &mut Connection,
        request: &Request,
        bytes: &[u8],
        cancel: &Cancel,
    ) -> io::Result<Response> {
        if !cancel.attach(Some(connection.socket()?)) {
            return Err(io::Error::new(ErrorKind::Other, "it was given up"));
        }
        let write_until_ms = now_ms() + request.timeout_ms;
        let read_until_ms = write_until_ms + request.wait_ms;
        let result = connection.exchange(bytes, write_until_ms, read_until_ms);
        cancel.attach(None);
        result
    }

    fn take(&self, replica: usize) -> Option<Connection> {
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

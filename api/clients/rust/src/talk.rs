// SPDX-License-Identifier: MIT
//! What is asked of redlockd, and when, without I/O: the rules of
//! docs/client-authors.md.
//!
//! ```text
//!            next(None)              next(Some(answer))
//!   begin ──────────────▶ Send ───────────────────────▶ Send | Pause | Done
//!   Pause ──────────────▶ Send | Done
//! ```

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{json, Map, Value};

use crate::answer::{Answer, Request};
use crate::clock::{between_ms, now_ms};
use crate::error::{Error, Holder};
use crate::grant::{Grant, Hold};
use crate::replicas::Replicas;
use crate::wanted::{Attempt, Wanted, LONGEST_WAIT_MS};

const BACKOFF_FIRST_MS: f64 = 50.0;
const BACKOFF_LAST_MS: f64 = 2000.0;
/// A response to a watch that reports nothing new should take its time.
const POLL_MS: f64 = 1000.0;
/// An extend with less time left waits for no other request.
const URGENT_MS: f64 = 1000.0;

/// What a talk wants now.
pub(crate) enum Step<T> {
    Send(Request),
    /// Nothing, for so many milliseconds.
    Pause(f64),
    Done(Result<T, Error>),
}

/// One operation.
pub(crate) trait Talk {
    type Out;

    /// `answer`: to the request that the last step wanted to send; `None` at the
    /// beginning, and after a pause.
    fn next(&mut self, answer: Option<Answer>) -> Step<Self::Out>;
}

pub(crate) type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// What all talks of a client have in common.
#[derive(Clone)]
pub(crate) struct Rules {
    pub replicas: Arc<Replicas>,
    pub timeout_ms: f64,
    pub log: Option<Log>,
}

impl Rules {
    pub fn warn(&self, text: &str) {
        if let Some(log) = &self.log {
            // As `eprintln!` does without a standard error. What is under way goes on:
            // the panic was reported, and the next request needs the place of this one.
            let _ = catch_unwind(AssertUnwindSafe(|| log(text)));
        }
    }

    /// What nobody is told.
    pub fn warn_of(&self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.warn(&error.to_string());
        }
    }

    fn count(&self) -> u32 {
        self.replicas.len() as u32
    }

    /// Another replica, which is asked next, need not be busy: what this one asks for
    /// counts only once each has failed.
    fn pause_ms(&self, failures: u32, answer: Option<&Answer>) -> f64 {
        let asked = answer.map_or(0.0, Answer::retry_after_ms);
        let counts = failures % self.count() == 0;
        backoff_ms(failures).max(if counts { asked } else { 0.0 })
    }

    fn shown(&self, answer: &Answer) -> &str {
        &self.replicas.names[answer.replica]
    }

    fn why(&self, answer: &Answer) -> String {
        format!("{}: {}", self.shown(answer), answer.words())
    }

    /// A refusal that is not from redlockd says where it is from.
    fn refused(&self, what: &str, answer: &Answer) -> String {
        let from = if answer.is_from_elsewhere() {
            format!(" (from {})", self.shown(answer))
        } else {
            String::new()
        };
        format!("{what}: {}{from}", answer.words())
    }

    fn denial(&self, what: &str, answer: &Answer) -> Error {
        let message = self.refused(what, answer);
        let code = answer.code().to_owned();
        match answer.status {
            401 => Error::Unauthorized { message, code },
            403 => Error::Forbidden { message, code },
            _ => Error::Untrusted(message),
        }
    }

    fn refusal(&self, what: &str, answer: &Answer) -> Error {
        if answer.is_denial() {
            return self.denial(what, answer);
        }
        Error::Refused {
            message: self.refused(what, answer),
            status: answer.status,
            code: answer.code().to_owned(),
        }
    }

    fn unavailable(&self, what: &str, answer: &Answer) -> Error {
        let message = format!("{what} ({})", self.why(answer));
        if !answer.is_limit() {
            return Error::Unavailable(message);
        }
        let retry_after = duration(answer.retry_after_ms());
        Error::RateLimited {
            message,
            retry_after,
        }
    }
}

pub(crate) fn duration(ms: f64) -> Duration {
    Duration::from_secs_f64((ms / 1000.0).clamp(0.0, 1e12))
}

/// Random, so that clients that failed together do not try again together.
fn backoff_ms(failures: u32) -> f64 {
    let factor = f64::from(1_u32 << failures.min(10));
    let longest_ms = (BACKOFF_FIRST_MS * factor).min(BACKOFF_LAST_MS);
    between_ms(longest_ms / 2.0, longest_ms)
}

pub(crate) fn holder(of: &Map<String, Value>) -> Holder {
    let number = |name| of.get(name).and_then(Value::as_u64);
    Holder {
        owner: of.get("owner").and_then(Value::as_str).map(str::to_owned),
        fencing_token: number("fencing_token"),
        readers: number("readers"),
        remaining: number("remaining_ms").map(Duration::from_millis),
    }
}

fn held(wanted: &Wanted, answer: &Answer) -> Error {
    let name = wanted.name();
    if let Some((limit, _)) = wanted.permits {
        return Error::Held {
            message: format!("{name}: not enough of its {limit} permits are free"),
            holder: Holder::default(),
        };
    }
    let of = answer.body.get("held_by").and_then(Value::as_object);
    let holder = of.map_or_else(Holder::default, holder);
    let by = match (holder.readers, &holder.owner) {
        (Some(1), _) => "a reader".to_owned(),
        (Some(readers), _) if readers > 0 => format!("{readers} readers"),
        (_, Some(owner)) => owner.clone(),
        _ => "somebody else".to_owned(),
    };
    Error::Held {
        message: format!("{name}: the lock is held by {by}"),
        holder,
    }
}

// ---- one's own lock -------------------------------------------------------------

/// Asks until the lock is held or the time is up.
pub(crate) struct Acquire {
    rules: Rules,
    pub attempt: Attempt,
    deadline_ms: f64,
    failures: u32,
    denials: u32,
}

impl Acquire {
    pub fn new(rules: &Rules, wanted: Wanted) -> Self {
        let wait_ms = wanted.wait_ms.unwrap_or(f64::INFINITY);
        Acquire {
            rules: rules.clone(),
            attempt: Attempt::new(wanted),
            deadline_ms: now_ms() + wait_ms,
            failures: 0,
            denials: 0,
        }
    }

    fn ask(&self) -> Step<Grant> {
        let left_ms = self.deadline_ms - now_ms();
        Step::Send(self.attempt.ask(self.rules.timeout_ms, left_ms))
    }

    /// It may have been granted, though nobody knows.
    fn failed(&mut self, answer: &Answer, left_ms: f64) -> Step<Grant> {
        let rules = &self.rules;
        let name = self.attempt.wanted.name();
        self.failures += 1;
        // each replica once, and one of them again
        if left_ms <= 0.0 && self.failures > rules.count() {
            let what = format!("{name}: no server grants it");
            return Step::Done(Err(rules.unavailable(&what, answer)));
        }
        rules.replicas.avoid(answer.replica);
        if self.failures == 1 {
            let why = rules.why(answer);
            rules.warn(&format!("{name}: not acquired yet, trying again ({why})"));
        }
        let pause_ms = rules.pause_ms(self.failures, Some(answer));
        Step::Pause(pause_ms.min(left_ms.max(0.0)))
    }

    fn denied(&mut self, answer: &Answer) -> Step<Grant> {
        self.denials += 1;
        self.rules.replicas.avoid(answer.replica);
        if self.denials < self.rules.count() {
            return self.ask();
        }
        let name = self.attempt.wanted.name();
        Step::Done(Err(self.rules.denial(&name, answer)))
    }
}

impl Talk for Acquire {
    type Out = Grant;

    fn next(&mut self, answer: Option<Answer>) -> Step<Grant> {
        let answer = match answer {
            Some(answer) => answer,
            None => return self.ask(),
        };
        match Grant::read(&answer) {
            Some(grant) if grant.work_until_ms > now_ms() => return Step::Done(Ok(grant)),
            _ => {}
        }
        self.attempt.may_be_granted |= !answer.grants_nothing();
        let left_ms = self.deadline_ms - now_ms();
        if answer.is_denial() && !answer.is_held() {
            return self.denied(&answer);
        }
        self.denials = 0;
        if answer.is_held() {
            if left_ms <= 0.0 {
                return Step::Done(Err(held(&self.attempt.wanted, &answer)));
            }
            if answer.is_try {
                self.attempt.wait_from_now_on();
                return self.ask();
            }
            if answer.waited_ms() > 0.0 {
                return self.ask();
            }
            let asked_ms = answer.retry_after_ms();
            let pause_ms = if asked_ms > 0.0 {
                asked_ms
            } else {
                backoff_ms(0)
            };
            return Step::Pause(pause_ms.min(left_ms));
        }
        if answer.is_final() {
            let name = self.attempt.wanted.name();
            return Step::Done(Err(self.rules.refusal(&name, &answer)));
        }
        self.failed(&answer, left_ms)
    }
}

/// Of an acquire that was given up: releases what it may have been granted.
pub(crate) struct GiveBack {
    rules: Rules,
    attempt: Attempt,
    release: Option<Release>,
    was_lost: bool,
    failures: u32,
}

impl GiveBack {
    pub fn new(rules: &Rules, attempt: Attempt) -> Self {
        GiveBack {
            rules: rules.clone(),
            attempt,
            release: None,
            was_lost: false,
            failures: 0,
        }
    }

    fn ask(&self) -> Step<()> {
        Step::Send(self.attempt.ask_again(self.rules.timeout_ms))
    }

    fn release(&mut self, mut release: Release, answer: Option<Answer>) -> Step<()> {
        let step = release.next(answer);
        match step {
            // the request that was given up may have come later than this one, and
            // have taken its place
            Step::Done(Err(Error::Lost(_))) if !self.was_lost => {
                self.was_lost = true;
                self.ask()
            }
            Step::Done(Err(Error::Lost(_))) => Step::Done(Ok(())),
            Step::Done(_) => step,
            _ => {
                self.release = Some(release);
                step
            }
        }
    }
}

impl Talk for GiveBack {
    type Out = ();

    fn next(&mut self, answer: Option<Answer>) -> Step<()> {
        if let Some(release) = self.release.take() {
            return self.release(release, answer);
        }
        let answer = match answer {
            Some(answer) => answer,
            None => return self.ask(),
        };
        let name = self.attempt.wanted.name();
        if let Some(grant) = Grant::read(&answer) {
            let resources = self.attempt.wanted.resources.clone();
            let hold = Arc::new(Hold::new(resources, grant));
            return self.release(Release::new(&self.rules, hold), None);
        }
        if answer.is_final() && !answer.is_denial() {
            return Step::Done(Ok(())); // others hold it: nothing was granted
        }
        self.rules.replicas.avoid(answer.replica);
        self.failures += 1;
        if self.failures <= self.rules.count() {
            return Step::Pause(backoff_ms(self.failures));
        }
        let left = "given up, and not released: it may be held until its TTL ends";
        Step::Done(Err(Error::NotReleased(format!("{name}: {left}"))))
    }
}

/// Extends a lock. `Ok(false)`: it cannot be extended, and expires. With a TTL, it is
/// not a renewal, but asked for: servers may refuse that, which is an error. Renewals
/// then have this TTL, too.
pub(crate) struct Extend {
    rules: Rules,
    hold: Arc<Hold>,
    ttl_ms: Option<u64>,
    is_downgrade: bool,
    has_begun: bool,
    wanted_shared: bool,
    failures: u32,
    refusals: u32,
}

impl Extend {
    pub fn new(rules: &Rules, hold: Arc<Hold>, ttl_ms: Option<u64>) -> Self {
        Extend {
            rules: rules.clone(),
            hold,
            ttl_ms,
            is_downgrade: false,
            has_begun: false,
            wanted_shared: false,
            failures: 0,
            refusals: 0,
        }
    }

    /// Makes an exclusive lock a shared one. If this is interrupted, the next renewal
    /// does it.
    pub fn downgrade(rules: &Rules, hold: Arc<Hold>) -> Self {
        let ttl_ms = Some(hold.grant().ttl_ms);
        Extend {
            is_downgrade: true,
            ..Extend::new(rules, hold, ttl_ms)
        }
    }

    fn ask(&mut self) -> Step<bool> {
        let left_ms = self.hold.remaining_ms();
        if left_ms <= 0.0 {
            return Step::Done(Err(self.hold.late()));
        }
        let grant = self.hold.grant();
        let mut body = json!({ "ttl_ms": self.ttl_ms.unwrap_or(grant.ttl_ms) });
        // asked with either token, a server finds the lock in either mode
        self.wanted_shared = self.hold.wants_shared();
        if self.wanted_shared {
            body["mode"] = "shared".into();
        }
        // Connection and response together take at most half of what is left: so
        // another replica can be asked.
        let timeout_ms = self.rules.timeout_ms.min(left_ms / 4.0);
        let path = format!("/locks/{}/extend", grant.id);
        Step::Send(Request {
            header: Some(("X-Lock-Token", grant.token)),
            body: Some(body),
            operation: Some(self.hold.operation("extend", left_ms < URGENT_MS)),
            ..Request::new("PUT", path, timeout_ms)
        })
    }

    fn refused(&self, answer: &Answer) -> Step<bool> {
        if self.is_downgrade && !answer.is_max_hold() {
            self.hold.want_shared(false); // no server has begun it
        }
        Step::Done(Err(self.rules.refusal(&self.hold.name, answer)))
    }
}

impl Talk for Extend {
    type Out = bool;

    fn next(&mut self, answer: Option<Answer>) -> Step<bool> {
        let answer = match answer {
            Some(answer) => answer,
            None => {
                if self.is_downgrade && !self.has_begun {
                    if self.hold.grant().is_shared {
                        return Step::Done(Ok(true));
                    }
                    self.hold.want_shared(true);
                }
                self.has_begun = true;
                return self.ask();
            }
        };
        if let Some(grant) = Grant::read(&answer) {
            self.hold.extended(grant);
            return Step::Done(Ok(true));
        }
        if self.wanted_shared != self.hold.wants_shared() {
            return self.ask(); // the token may have changed meanwhile
        }
        let name = &self.hold.name;
        let words = answer.words();
        if answer.is_ended() {
            return Step::Done(Err(Error::Lost(format!(
                "{name}: the lock ended ({words})"
            ))));
        }
        if answer.is_max_hold() {
            self.rules
                .warn(&format!("{name}: no longer extended ({words})"));
            if self.ttl_ms.is_some() {
                return self.refused(&answer);
            }
            return Step::Done(Ok(false));
        }
        let may_be_done = answer.is_repeated && self.is_downgrade;
        if self.ttl_ms.is_some() && answer.is_final() && !may_be_done {
            self.refusals += 1;
            if self.refusals == self.failures + 1 && self.refusals >= self.rules.count() {
                return self.refused(&answer);
            }
        }
        self.failures += 1;
        self.rules.replicas.avoid(answer.replica);
        let why = self.rules.why(&answer);
        self.rules
            .warn(&format!("{name}: not extended yet ({why})"));
        let pause_ms = self.rules.pause_ms(self.failures, Some(&answer));
        Step::Pause(pause_ms.min(self.hold.remaining_ms() / 4.0))
    }
}

/// Releases a lock. `Error::Lost`: it had ended before. `Error::NotReleased`: no server
/// answers: the lock expires, and other clients wait for that long.
pub(crate) struct Release {
    rules: Rules,
    hold: Arc<Hold>,
    may_be_done: bool,
    failures: u32,
}

impl Release {
    pub fn new(rules: &Rules, hold: Arc<Hold>) -> Self {
        hold.set_released();
        Release {
            rules: rules.clone(),
            hold,
            may_be_done: false,
            failures: 0,
        }
    }
}

impl Talk for Release {
    type Out = ();

    fn next(&mut self, answer: Option<Answer>) -> Step<()> {
        let answer = match answer {
            Some(answer) => answer,
            None => {
                let grant = self.hold.grant();
                let path = format!("/locks/{}", grant.id);
                return Step::Send(Request {
                    header: Some(("X-Lock-Token", grant.token)),
                    operation: Some(self.hold.operation("release", false)),
                    ..Request::new("DELETE", path, self.rules.timeout_ms)
                });
            }
        };
        if answer.status == 200 {
            return Step::Done(Ok(()));
        }
        let name = &self.hold.name;
        let words = answer.words();
        if answer.is_ended() {
            if self.may_be_done || answer.is_repeated {
                return Step::Done(Ok(())); // that may have been our own release
            }
            let loss = format!("{name}: the lock had ended ({words})");
            return Step::Done(Err(Error::Lost(loss)));
        }
        self.failures += 1;
        self.may_be_done |=
            answer.is_repeated || !(answer.is_denial() || answer.is_limit() || answer.is_unsent());
        self.rules.replicas.avoid(answer.replica);
        let left_ms = self.hold.validity_ms();
        if left_ms <= 0.0 || self.failures > self.rules.count() {
            let left_s = left_ms / 1000.0;
            return Step::Done(Err(Error::NotReleased(format!(
                "{name}: not released; it expires in {left_s:.1} s ({words})"
            ))));
        }
        let heeded = answer.is_limit().then(|| &answer);
        Step::Pause(self.rules.pause_ms(self.failures, heeded).min(left_ms))
    }
}

// ---- any lock -------------------------------------------------------------------

/// Asks each replica once, and one of them again, until one returns something else
/// than a failure of its own: an object with this member, or a problem. A problem is
/// an error, but that a lock to be released by force has ended: that is an empty
/// object.
pub(crate) struct Ask {
    rules: Rules,
    what: String,
    method: &'static str,
    path: String,
    member: &'static str,
    failures: u32,
    denials: u32,
}

impl Ask {
    pub fn new(rules: &Rules, what: &str, path: String, member: &'static str) -> Self {
        Ask {
            rules: rules.clone(),
            what: what.to_owned(),
            method: "GET",
            path,
            member,
            failures: 0,
            denials: 0,
        }
    }

    /// The lock as `GET /locks/<id>` describes it, held or not.
    pub fn holder(rules: &Rules, resource: &str) -> Self {
        let path = format!("/locks/{}", id(resource));
        Ask::new(rules, resource, path, "held")
    }

    /// `which`: a fencing token, or `all`: the locks of all readers.
    pub fn force(rules: &Rules, id: &str, which: &str) -> Self {
        let path = format!("/locks/{}?force={which}", percent_encoded(id));
        Ask {
            method: "DELETE",
            ..Ask::new(rules, id, path, "released")
        }
    }
}

impl Talk for Ask {
    type Out = Map<String, Value>;

    fn next(&mut self, answer: Option<Answer>) -> Step<Self::Out> {
        let answer = match answer {
            Some(answer) => answer,
            None => {
                let path = self.path.clone();
                let request = Request::new(self.method, path, self.rules.timeout_ms);
                return Step::Send(request);
            }
        };
        let is_denial = answer.is_denial();
        self.denials = if is_denial { self.denials + 1 } else { 0 };
        if self.denials >= self.rules.count() {
            return Step::Done(Err(self.rules.denial(&self.what, &answer)));
        }
        if !is_denial && answer.has(self.member) {
            return Step::Done(Ok(answer.body));
        }
        if !is_denial && answer.is_final() {
            if self.method == "DELETE" && answer.is_ended() {
                return Step::Done(Ok(Map::new()));
            }
            return Step::Done(Err(self.rules.refusal(&self.what, &answer)));
        }
        self.failures += 1;
        self.rules.replicas.avoid(answer.replica);
        if self.failures > self.rules.count() {
            let what = format!("{}: no server answers", self.what);
            return Step::Done(Err(self.rules.unavailable(&what, &answer)));
        }
        if is_denial {
            return self.next(None);
        }
        Step::Pause(backoff_ms(0))
    }
}

/// Waits until the lock has another version than this; `None`: none is known. Goes on
/// while servers fail. Returns the lock as `GET /locks/<id>` describes it, held or not.
pub(crate) struct Watch {
    rules: Rules,
    resource: String,
    version: Option<Value>,
    waits: bool,
    failures: u32,
    denials: u32,
}

impl Watch {
    pub fn new(rules: &Rules, resource: &str, version: Option<Value>) -> Self {
        Watch {
            rules: rules.clone(),
            resource: resource.to_owned(),
            waits: version.is_some(),
            version,
            failures: 0,
            denials: 0,
        }
    }

    fn ask(&self) -> Request {
        let path = format!("/locks/{}", id(&self.resource));
        let version = match &self.version {
            Some(version) if self.waits => version,
            _ => return Request::new("GET", path, self.rules.timeout_ms),
        };
        let version = version
            .as_str()
            .map_or_else(|| version.to_string(), percent_encoded);
        let path = format!("{path}?after={version}&wait_ms={LONGEST_WAIT_MS}");
        Request {
            wait_ms: LONGEST_WAIT_MS,
            ..Request::new("GET", path, self.rules.timeout_ms)
        }
    }
}

impl Talk for Watch {
    type Out = Map<String, Value>;

    fn next(&mut self, answer: Option<Answer>) -> Step<Self::Out> {
        let answer = match answer {
            Some(answer) => answer,
            None => return Step::Send(self.ask()),
        };
        if answer.is_denial() {
            self.denials += 1;
            self.rules.replicas.avoid(answer.replica);
            if self.denials >= self.rules.count() {
                return Step::Done(Err(self.rules.denial(&self.resource, &answer)));
            }
            return Step::Send(self.ask());
        }
        self.denials = 0;
        if answer.has("version") {
            self.failures = 0;
            self.waits = self.version.is_some();
            if answer.body.get("version") != self.version.as_ref() {
                return Step::Done(Ok(answer.body));
            }
            return Step::Pause((answer.sent_ms + POLL_MS - now_ms()).max(0.0));
        }
        if answer.is_final() {
            return Step::Done(Err(self.rules.refusal(&self.resource, &answer)));
        }
        self.failures += 1;
        self.rules.replicas.avoid(answer.replica);
        self.waits = false; // a server that does not wait, as it stops, may still answer
        Step::Pause(self.rules.pause_ms(self.failures, Some(&answer)))
    }
}

/// Whether a replica that failed is back.
pub(crate) struct Probe {
    pub rules: Rules,
    pub replica: usize,
}

impl Talk for Probe {
    type Out = ();

    fn next(&mut self, answer: Option<Answer>) -> Step<()> {
        let answer = match answer {
            Some(answer) => answer,
            None => {
                return Step::Send(Request {
                    replica: Some(self.replica),
                    ..Request::new("GET", "/readyz".into(), 1000.0)
                });
            }
        };
        let is_back = (200..500).contains(&answer.status) && !answer.is_limit();
        self.rules.replicas.probed(self.replica, is_back);
        Step::Done(Ok(()))
    }
}

/// The ID of a resource as the servers make it: any proxy passes it on unchanged.
fn id(resource: &str) -> String {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || b"._:-".contains(&c);
    if !matches!(resource, "" | "." | "..") && resource.bytes().all(is_plain) {
        return resource.to_owned();
    }
    let text = openssl::base64::encode_block(resource.as_bytes());
    let text = text.replace('+', "-").replace('/', "_");
    format!("~{}", text.trim_end_matches('='))
}

pub(crate) fn percent_encoded(text: &str) -> String {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || b"_.~:-".contains(&c);
    text.bytes()
        .map(|c| {
            if is_plain(c) {
                char::from(c).to_string()
            } else {
                format!("%{c:02X}")
            }
        })
        .collect()
}

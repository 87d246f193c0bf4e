// SPDX-License-Identifier: MIT
//! Requests, and what they come to.

use serde_json::{Map, Value};

/// Who else may have an operation on the same resource in the same batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    Nobody,
    Readers,
    /// Others that acquire permits.
    Permits,
}

/// What a request does with a lock, if it may go in a batch with others.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// `acquire`, `extend` or `release`.
    pub name: &'static str,
    /// Of the lock; `None`: it is acquired.
    pub id: Option<String>,
    pub resources: Vec<String>,
    pub sharing: Sharing,
    /// It has no time to wait for other requests.
    pub is_urgent: bool,
    /// An acquire that was tried, and found the lock held.
    pub must_wait: bool,
}

/// A request that a talk wants to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub method: &'static str,
    pub path: String,
    pub header: Option<(&'static str, String)>,
    pub body: Option<Value>,
    /// For the connection, and for the response.
    pub timeout_ms: f64,
    /// How much later the response may come, as the server waits.
    pub wait_ms: f64,
    /// `None`: the first that is not avoided.
    pub replica: Option<usize>,
    /// `None`: it does not go in a batch.
    pub operation: Option<Operation>,
}

impl Request {
    pub fn new(method: &'static str, path: String, timeout_ms: f64) -> Self {
        Request {
            method,
            path,
            header: None,
            body: None,
            timeout_ms,
            wait_ms: 0.0,
            replica: None,
            operation: None,
        }
    }
}

/// Why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The request may have been carried out.
    Lost,
    /// No server has got the request.
    Unsent,
    /// The server's certificate is not trusted.
    Untrusted,
}

/// What a request came to: a response, or that there is none.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// 0: there is no response.
    pub status: u16,
    pub body: Map<String, Value>,
    pub failure: Option<Failure>,
    pub detail: String,
    pub replica: usize,
    /// The moment before the request was sent.
    pub sent_ms: f64,
    /// The request may have arrived twice, as a kept connection had ended before the
    /// response.
    pub is_repeated: bool,
    /// The request would have waited for the lock, and was sent without a wait.
    pub is_try: bool,
    pub content_type: String,
}

impl Answer {
    pub fn failed(failure: Failure, detail: String, replica: usize, sent_ms: f64) -> Self {
        Answer {
            status: 0,
            body: Map::new(),
            failure: Some(failure),
            detail,
            replica,
            sent_ms,
            is_repeated: false,
            is_try: false,
            content_type: String::new(),
        }
    }

    /// The content may be no JSON: a proxy may have answered.
    pub fn read(status: u16, content: &[u8], retry_after: Option<&str>) -> Self {
        let mut body = match serde_json::from_slice(content) {
            Ok(Value::Object(body)) => body,
            _ => Map::new(),
        };
        let digits = retry_after.unwrap_or("");
        if (1..10).contains(&digits.len())
            && digits.bytes().all(|c| c.is_ascii_digit())
            && body.get("retry_after_ms").map_or(true, Value::is_null)
        {
            let seconds: u64 = digits.parse().unwrap_or(0);
            body.insert("retry_after_ms".into(), (seconds * 1000).into());
        }
        Answer::of(status, body)
    }

    fn of(status: u16, body: Map<String, Value>) -> Self {
        let detail = body.get("detail").and_then(Value::as_str).unwrap_or("");
        Answer {
            status,
            detail: detail.to_owned(),
            body,
            failure: None,
            replica: 0,
            sent_ms: 0.0,
            is_repeated: false,
            is_try: false,
            content_type: String::new(),
        }
    }

    pub fn code(&self) -> &str {
        self.body.get("code").and_then(Value::as_str).unwrap_or("")
    }

    /// Whether the request is wrong, here and at every other replica.
    pub fn is_final(&self) -> bool {
        (300..500).contains(&self.status) && self.status != 408 && self.status != 429
    }

    /// By redlockd or by a gateway in front. Another replica may know other identities.
    pub fn is_denial(&self) -> bool {
        matches!(self.status, 401 | 403) || self.failure == Some(Failure::Untrusted)
    }

    /// Whether a server does not know the identity with which it was sent, or an
    /// operation of the batch was.
    pub fn has_401(&self) -> bool {
        let is_401 = |result: &Value| result.get("status").and_then(Value::as_u64) == Some(401);
        self.status == 401 || self.results().map_or(false, |all| all.iter().any(is_401))
    }

    pub fn is_limit(&self) -> bool {
        self.status == 429
    }

    /// Whether the server that gave it works.
    pub fn is_good(&self) -> bool {
        if let Some(results) = self.results() {
            let count = results.len();
            let mut all = (0..count).filter_map(|place| self.of_batch(place, count));
            return all.any(|one| one.is_good());
        }
        (200..500).contains(&self.status)
            && self.status != 408
            && !self.is_limit()
            && !self.is_denial()
    }

    /// Of a batch.
    pub fn results(&self) -> Option<&Vec<Value>> {
        self.body.get("results").and_then(Value::as_array)
    }

    /// That of an operation, if this is that of its batch of so many. `None`: it does
    /// not say what became of the operation, which is to go alone.
    pub fn of_batch(&self, place: usize, count: usize) -> Option<Answer> {
        match self.status {
            200..=299 => {}
            0 | 401 | 403 | 408 | 421 | 429 | 500.. => return Some(self.clone()),
            // the first one of two may have been carried out
            _ if self.is_repeated => {
                let words = "the repeat of a batch was refused".into();
                let lost = Answer::failed(Failure::Lost, words, self.replica, self.sent_ms);
                return Some(lost);
            }
            _ => return None,
        }
        let results = self.results().filter(|all| all.len() == count);
        let result = results.map(|all| &all[place]);
        let status = result.and_then(|result| result.get("status")?.as_u64());
        let names = ["grant", "release", "problem"];
        let body = names
            .iter()
            .find_map(|name| result?.get(*name)?.as_object());
        let mut answer = match (status.map(u16::try_from), body) {
            // alone, it may have a newer access token
            (Some(Ok(401)), _) if !self.is_repeated => return None,
            (Some(Ok(status)), Some(body)) if status != 401 => Answer::of(status, body.clone()),
            _ => {
                let words = "not a result for each operation of the batch".into();
                Answer::failed(Failure::Lost, words, 0, 0.0)
            }
        };
        answer.replica = self.replica;
        answer.sent_ms = self.sent_ms;
        answer.is_repeated = self.is_repeated;
        Some(answer)
    }

    /// Whether others hold the lock, and it can be waited for.
    pub fn is_held(&self) -> bool {
        matches!(self.code(), "lock_held" | "too_many_readers")
    }

    pub fn is_ended(&self) -> bool {
        matches!(self.code(), "lock_not_found" | "not_owner")
    }

    pub fn is_max_hold(&self) -> bool {
        self.code() == "max_hold_reached"
    }

    pub fn is_unsent(&self) -> bool {
        self.failure == Some(Failure::Unsent)
    }

    /// Whether an acquire with this response certainly was not granted.
    pub fn grants_nothing(&self) -> bool {
        !self.is_repeated
            && (self.is_final() || self.is_denial() || self.is_limit() || self.is_unsent())
    }

    /// Whether it is what was asked for, and no page of a proxy.
    pub fn has(&self, member: &str) -> bool {
        self.status == 200 && self.body.contains_key(member)
    }

    pub fn waited_ms(&self) -> f64 {
        self.number("waited_ms")
    }

    pub fn retry_after_ms(&self) -> f64 {
        self.number("retry_after_ms")
    }

    fn number(&self, name: &str) -> f64 {
        let number = self.body.get(name).and_then(Value::as_f64);
        number.unwrap_or(0.0).max(0.0)
    }

    /// Whether something else than redlockd has refused it, whose problems have a code.
    pub fn is_from_elsewhere(&self) -> bool {
        self.status >= 300 && self.code().is_empty()
    }

    pub fn words(&self) -> String {
        if self.status == 0 {
            return self.detail.clone();
        }
        if !self.is_from_elsewhere() {
            return format!("{} {}", self.status, self.detail);
        }
        let kind: String = self.content_type.chars().take(80).collect();
        let kind = kind.replace(|c| !(' '..='~').contains(&c), "?");
        let kind = if kind.is_empty() {
            "no Content-Type"
        } else {
            &kind
        };
        format!("{} not from redlockd ({kind})", self.status)
    }
}

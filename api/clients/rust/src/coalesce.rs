// SPDX-License-Identifier: MIT
//! Which requests of a client go when, and which go together, without I/O: the rules of
//! "Coalescing" in docs/client-authors.md.
//!
//! ```text
//!   add ──▶ queue ──▶ a place is free ──▶ Flight ──▶ land ──▶ an answer for each ──▶ leave
//!             ▲                                       │
//!             └──── a batch was refused: alone ◀──────┘
//! ```
//!
//! A place is one short request under way; there are two of them. Nothing is delayed:
//! whoever is alone goes at once.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{json, Map, Value};

use crate::answer::{Answer, Failure, Operation, Request, Sharing};
use crate::cancel::{Cancel, Watching};

const PLACES: usize = 2;
/// Servers take 100 operations and 64 KiB.
const MOST: usize = 100;
const LONGEST: usize = 48 * 1024;
/// `{"operations":[]}`
const FRAME: usize = 17;
/// Of a batch, no timeout is longer than so many times another one's: the shortest one
/// is that of all.
const SPREAD: f64 = 2.0;

type Answered = Box<dyn FnOnce(Answer) + Send>;

/// A request on its way. If it is dropped, its answer is that there is none.
pub(crate) struct Call {
    pub number: u64,
    pub request: Request,
    /// Ends the request if it is under way alone.
    pub cancel: Cancel,
    /// Takes it out of the queue.
    pub watching: Option<Watching>,
    answered: Option<Answered>,
    /// It would have waited, and was sent without.
    is_try: bool,
    /// A batch with it was refused.
    goes_alone: bool,
}

impl Call {
    /// `answered` is called once, by any thread, and must not wait.
    pub fn new(
        number: u64,
        request: Request,
        cancel: Cancel,
        answered: impl FnOnce(Answer) + Send + 'static,
    ) -> Self {
        Call {
            number,
            request,
            cancel,
            watching: None,
            answered: Some(Box::new(answered)),
            is_try: false,
            goes_alone: false,
        }
    }

    pub fn answer(mut self, mut answer: Answer) {
        answer.is_try = self.is_try;
        if let Some(answered) = self.answered.take() {
            answered(answer);
        }
    }

    fn operation(&self) -> Option<&Operation> {
        self.request.operation.as_ref()
    }

    fn has(&self, which: impl FnOnce(&Operation) -> bool) -> bool {
        self.operation().map_or(false, which)
    }

    /// In a batch, if it goes beside others. As a request of its own, it would keep its
    /// place while the server tries it again and again, because others want the same
    /// lock at the same moment.
    fn is_tried_once(&self) -> bool {
        !self.goes_alone
            && self.has(|operation| operation.name == "acquire")
            && FRAME + length(&self.request.item()) <= LONGEST
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(answered) = self.answered.take() {
            let words = "the request was not sent, or its thread has ended".into();
            answered(Answer::failed(Failure::Lost, words, 0, 0.0));
        }
    }
}

fn length(item: &Value) -> usize {
    item.to_string().len() + 1
}

/// What a request that is under way counts as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    Short,
    /// It takes no place: the server waits, or there is no time to wait here.
    Beside,
}

/// A request that is to be sent: a call, or a batch of them.
pub(crate) struct Flight {
    pub number: u64,
    pub calls: Vec<Call>,
    pub is_batch: bool,
}

impl Flight {
    pub fn request(&self) -> Cow<'_, Request> {
        if !self.is_batch {
            return Cow::Borrowed(&self.calls[0].request);
        }
        let items: Vec<Value> = self.calls.iter().map(|call| call.request.item()).collect();
        let timeouts = self.calls.iter().map(|call| call.request.timeout_ms);
        let timeout_ms = timeouts.fold(f64::INFINITY, f64::min);
        Cow::Owned(Request {
            body: Some(json!({ "operations": items })),
            ..Request::new("POST", "/batch".into(), timeout_ms)
        })
    }

    /// Ends the request, if it is of one call alone.
    pub fn cancel(&self) -> Option<&Cancel> {
        match self.calls.as_slice() {
            [one] => Some(&one.cancel),
            _ => None,
        }
    }

    /// Returns each call with its answer, and those that are to go alone.
    pub fn land(self, answer: Answer) -> (Vec<(Call, Answer)>, Vec<Call>) {
        let (mut arrived, mut again) = (Vec::new(), Vec::new());
        if !self.is_batch {
            arrived.extend(self.calls.into_iter().zip([answer]));
            return (arrived, again);
        }
        let count = self.calls.len();
        for (place, mut call) in self.calls.into_iter().enumerate() {
            match answer.of_batch(place, count) {
                Some(of_it) => arrived.push((call, of_it)),
                None => {
                    call.goes_alone = true;
                    again.push(call);
                }
            }
        }
        (arrived, again)
    }
}

/// What a batch has so far.
#[derive(Default)]
struct Load {
    resources: HashMap<String, Sharing>,
    tokens: HashSet<String>,
    length: usize,
    timeouts_ms: Option<(f64, f64)>,
}

impl Load {
    /// Whether it may go along; it then does.
    fn takes(&mut self, request: &Request, operation: &Operation) -> bool {
        let token = operation.id.as_ref().and(request.header.as_ref());
        let token = token.map(|(_, token)| token);
        let (ms, length) = (request.timeout_ms, length(&request.item()));
        let (least, most) = self.timeouts_ms.unwrap_or((ms, ms));
        let (least, most) = (least.min(ms), most.max(ms));
        let is_first = self.timeouts_ms.is_none();
        let clashes = |name: &String| {
            let other = self.resources.get(name);
            other.map_or(false, |&other| {
                other == Sharing::Nobody || other != operation.sharing
            })
        };
        if !is_first
            && (self.length + length > LONGEST
                || most > least * SPREAD
                || token.map_or(false, |token| self.tokens.contains(token))
                || operation.resources.iter().any(clashes))
        {
            return false;
        }
        for name in &operation.resources {
            self.resources.insert(name.clone(), operation.sharing);
        }
        self.tokens.extend(token.cloned());
        self.length = if is_first { FRAME } else { self.length } + length;
        self.timeouts_ms = Some((least, most));
        true
    }
}

/// Takes the first one, and what can go with it. What clashes with one of these stays,
/// and is the first the next time.
fn take_batch(queue: &mut VecDeque<Call>) -> Vec<Call> {
    let mut load = Load::default();
    let (mut batch, mut stays) = (Vec::new(), VecDeque::new());
    while batch.len() < MOST {
        let call = match queue.pop_front() {
            Some(call) => call,
            None => break,
        };
        let fits = call.has(|operation| load.takes(&call.request, operation));
        match (batch.is_empty(), call.goes_alone) {
            (true, true) => return vec![call],
            (_, false) if fits => batch.push(call),
            _ => stays.push_back(call),
        }
    }
    stays.append(queue);
    *queue = stays;
    batch
}

/// Of one client.
#[derive(Default)]
pub(crate) struct Queue {
    calls: VecDeque<Call>,
    /// To be added at the end of this moment, together.
    soon: Vec<Call>,
    under_way: HashMap<u64, Counts>,
    count: u64,
}

impl Queue {
    /// For a new call.
    pub fn next_number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    fn short(&self) -> usize {
        let all = self.under_way.values();
        all.filter(|&&counts| counts == Counts::Short).count()
    }

    fn sends(&mut self, calls: Vec<Call>, counts: Option<Counts>) -> Flight {
        let is_batch = calls.len() > 1
            || counts == Some(Counts::Short)
                && !self.under_way.is_empty()
                && calls[0].is_tried_once();
        let number = self.next_number();
        self.under_way.extend(counts.map(|counts| (number, counts)));
        Flight {
            number,
            calls,
            is_batch,
        }
    }

    /// Of one moment. Returns what to send at once: of one call, this one alone, or
    /// nothing.
    pub fn add(&mut self, calls: Vec<Call>) -> Vec<Flight> {
        let mut flights = Vec::new();
        let mut urgent = VecDeque::new();
        for mut call in calls {
            let is_idle = self.under_way.is_empty() && self.calls.is_empty();
            if call.operation().is_none() {
                flights.push(self.sends(vec![call], None));
            } else if call.has(|operation| operation.is_urgent) {
                urgent.push_back(call);
            } else if call.request.wait_ms > 0.0
                && (is_idle || call.has(|operation| operation.must_wait))
            {
                flights.push(self.sends(vec![call], Some(Counts::Beside)));
            } else {
                call.is_try = call.request.wait_ms > 0.0;
                call.request.do_not_wait();
                self.calls.push_back(call);
            }
        }
        while !urgent.is_empty() {
            let batch = take_batch(&mut urgent);
            flights.push(self.sends(batch, Some(Counts::Beside)));
        }
        flights.extend(self.fill());
        flights
    }

    /// For `add_soon_ones`. Returns whether it is the first one.
    pub fn add_soon(&mut self, call: Call) -> bool {
        self.soon.push(call);
        self.soon.len() == 1
    }

    pub fn add_soon_ones(&mut self) -> Vec<Flight> {
        let calls = std::mem::take(&mut self.soon);
        self.add(calls)
    }

    /// Those that a refused batch had.
    pub fn add_again(&mut self, calls: Vec<Call>) {
        for call in calls.into_iter().rev() {
            self.calls.push_front(call);
        }
    }

    /// Takes it out, if it has not been sent.
    pub fn take_out(&mut self, number: u64) -> Option<Call> {
        let is_it = |call: &Call| call.number == number;
        if let Some(place) = self.soon.iter().position(is_it) {
            return Some(self.soon.remove(place));
        }
        let place = self.calls.iter().position(is_it)?;
        self.calls.remove(place)
    }

    /// The flight no longer has a place: it has landed, or is overdue. Returns what to
    /// send now. May be called twice.
    pub fn leave(&mut self, number: u64) -> Vec<Flight> {
        self.under_way.remove(&number);
        self.fill()
    }

    fn fill(&mut self) -> Vec<Flight> {
        let mut flights = Vec::new();
        while !self.calls.is_empty() && self.short() < PLACES {
            let batch = take_batch(&mut self.calls);
            flights.push(self.sends(batch, Some(Counts::Short)));
        }
        flights
    }
}

impl Request {
    /// As an item of a batch.
    pub fn item(&self) -> Value {
        let mut item = match &self.body {
            Some(Value::Object(body)) => body.clone(),
            _ => Map::new(),
        };
        let secret = self.header.as_ref().map(|(_, secret)| secret.as_str());
        if let Some(operation) = &self.operation {
            item.insert("operation".into(), operation.name.into());
            match &operation.id {
                None => item.insert("idempotency_key".into(), secret.into()),
                Some(id) => {
                    item.insert("token".into(), secret.into());
                    item.insert("id".into(), id.as_str().into())
                }
            };
        }
        Value::Object(item)
    }

    fn do_not_wait(&mut self) {
        self.wait_ms = 0.0;
        if let Some(Value::Object(body)) = &mut self.body {
            body.remove("wait_ms");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::together::request;

    fn call(number: u64, item: &Value, timeout_ms: f64) -> Call {
        let request = Request {
            timeout_ms,
            ..request(item, &Map::new())
        };
        Call::new(number, request, Cancel::new(), drop)
    }

    fn acquire(number: u64, resource: &str) -> Call {
        let item = json!({ "operation": "acquire", "resource": resource });
        call(number, &item, 5000.0)
    }

    /// Both places are taken; returns what goes when one of them is free.
    fn collected(calls: Vec<Call>) -> Vec<Flight> {
        let mut queue = Queue::default();
        let first = queue.add(vec![acquire(1, "first")]).remove(0);
        let second = queue.add(vec![acquire(2, "second")]).remove(0);
        assert!(queue.add(calls).is_empty());
        let mut flights = queue.leave(first.number);
        flights.extend(queue.leave(second.number));
        flights
    }

    fn counts(flights: &[Flight]) -> Vec<usize> {
        flights.iter().map(|flight| flight.calls.len()).collect()
    }

    #[test]
    fn a_batch_has_at_most_100_operations_and_48_kib() {
        let flights = collected((0..250).map(|n| acquire(n, &n.to_string())).collect());
        assert_eq!(counts(&flights), [100, 100]);
        let long = |n: u64| acquire(n, &format!("{n}{}", "x".repeat(5000)));
        let flights = collected((0..20).map(long).collect());
        assert_eq!(counts(&flights), [9, 9]);
        let text = flights[0]
            .request()
            .body
            .as_ref()
            .expect("a body")
            .to_string();
        assert!((40_000..=LONGEST).contains(&text.len()), "{}", text.len());
        // larger than any batch
        let flights = collected(vec![acquire(1, &"x".repeat(50_000)), acquire(2, "b")]);
        assert_eq!(counts(&flights), [1, 1]);
        assert!(!flights[0].is_batch && flights[1].is_batch);
    }

    #[test]
    fn only_similar_timeouts_go_together_and_the_shortest_counts() {
        let extend = |number, timeout_ms| {
            let id = format!("r{number}");
            let token = format!("t.{number}");
            let item = json!({ "operation": "extend", "id": id, "token": token });
            call(number, &item, timeout_ms)
        };
        let times = [2000.0, 1000.0, 900.0, 4000.0, 3000.0];
        let calls = times
            .iter()
            .zip(0..)
            .map(|(&ms, number)| extend(number, ms));
        let flights = collected(calls.collect());
        assert_eq!(counts(&flights), [2, 1]);
        assert_eq!(flights[0].request().timeout_ms, 1000.0);
        assert_eq!(flights[1].request().timeout_ms, 900.0);
    }

    #[test]
    fn two_of_one_lock_do_not_go_together() {
        let of = |operation: &str, resource: &str| json!({ "operation": operation, "resource": resource });
        let reader = json!({ "operation": "acquire", "resource": "a", "mode": "shared" });
        let permit = json!({ "operation": "acquire", "resource": "a", "limit": 3 });
        let release = json!({ "operation": "release", "id": "a", "token": "1.x" });
        let several = json!({ "operation": "acquire", "resources": ["a", "b"] });
        for (one, other, is) in [
            (of("acquire", "a"), of("acquire", "b"), true),
            (of("acquire", "a"), of("acquire", "a"), false),
            (several, of("acquire", "b"), false),
            (reader.clone(), reader.clone(), true),
            (reader.clone(), of("acquire", "a"), false),
            (permit.clone(), permit.clone(), true),
            (permit.clone(), reader, false),
            (permit, release.clone(), false),
            (release.clone(), release, false),
        ] {
            let flights = collected(vec![call(1, &one, 9.0), call(2, &other, 9.0)]);
            let expected: &[usize] = if is { &[2] } else { &[1, 1] };
            assert_eq!(counts(&flights), expected, "{one} {other}");
        }
        let token = |id| json!({ "operation": "extend", "id": id, "token": "1~x" });
        let calls = vec![call(1, &token("a"), 9.0), call(2, &token("b"), 9.0)];
        assert_eq!(counts(&collected(calls)), [1, 1]);
    }

    #[test]
    fn the_items_of_a_batch() {
        let extend = json!({"operation": "extend", "id": "b", "token": "1.x", "ttl_ms": 10});
        let waits = Map::from_iter([("wait_ms".into(), json!(100))]);
        let acquire = json!({ "operation": "acquire", "resource": "a\"ü", "owner": "me" });
        let acquire = Call::new(1, request(&acquire, &waits), Cancel::new(), drop);
        let flights = collected(vec![acquire, call(2, &extend, 5000.0)]);
        let body = &flights[0].request().body;
        let acquire = json!({ "operation": "acquire", "resource": "a\"ü", "owner": "me",
                              "idempotency_key": "key" });
        assert_eq!(body, &Some(json!({ "operations": [acquire, extend] })));
    }

    #[test]
    fn each_operation_has_a_result_of_its_own() {
        let land = |answer: Answer| {
            let calls = vec![acquire(1, "a"), acquire(2, "b")];
            let flight = collected(calls).remove(0);
            let (arrived, again) = flight.land(answer);
            let statuses: Vec<u16> = arrived.iter().map(|(_, answer)| answer.status).collect();
            (statuses, again.len())
        };
        let read = |status, body: Value| Answer::read(status, body.to_string().as_bytes(), None);
        let grant = json!({ "status": 201, "grant": {} });
        let problem = |status: u16| json!({ "status": status, "problem": {} });
        let both = |other: Value| json!({ "results": [grant.clone(), other] });
        assert_eq!(land(read(200, both(problem(409)))), (vec![201, 409], 0));
        assert_eq!(
            land(read(200, both(json!({ "status": 200 })))),
            (vec![201, 0], 0)
        );
        // it may have a newer access token by then
        assert_eq!(land(read(200, both(problem(401)))), (vec![201], 1));
        for status in [400, 404, 405, 413, 302] {
            assert_eq!(land(read(status, json!({}))), (vec![], 2));
        }
        for status in [401, 403, 421, 429, 502, 503] {
            assert_eq!(land(read(status, json!({}))), (vec![status; 2], 0));
        }
        assert_eq!(land(read(200, json!({}))), (vec![0; 2], 0));
        assert_eq!(
            land(read(200, json!({ "results": [grant] }))),
            (vec![0; 2], 0)
        );
        // only failures are no proof that the server works
        let failures = json!({ "results": [problem(503), problem(429)] });
        assert!(!read(200, failures).is_good());
        assert!(read(200, both(problem(503))).is_good());
    }

    #[test]
    fn a_call_that_is_dropped_is_answered() {
        let (tell, told) = std::sync::mpsc::channel();
        let request = request(
            &json!({ "operation": "acquire", "resource": "a" }),
            &Map::new(),
        );
        let tell = move |answer: Answer| tell.send(answer.failure).expect("it is read");
        drop(Call::new(1, request, Cancel::new(), tell));
        assert_eq!(told.recv(), Ok(Some(Failure::Lost)));
    }
}

// SPDX-License-Identifier: MIT
//! Plays the transcripts of which calls go together, for `transcripts`.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use serde_json::{json, Map, Value};

use crate::answer::{Answer, Failure, Operation, Request, Sharing};
use crate::cancel::Cancel;
use crate::coalesce::{Call, Flight, Queue};
use crate::sync::locked;
use crate::transcripts::keys;

/// What a step may have beside its first word.
const STEPS: [(&str, &str); 5] = [
    ("ask", "operation wait_ms must_wait urgent more"),
    ("leaves", "wait_ms batch"),
    ("lands", "answer results told stale"),
    ("overdue", ""),
    ("gives_up", ""),
];

#[derive(Default)]
pub(crate) struct Together {
    queue: Queue,
    names: BTreeMap<u64, String>,
    asked: Vec<Call>,
    departing: Vec<Flight>,
    under_way: Vec<Flight>,
    /// The status that each task got.
    told: Arc<Mutex<BTreeMap<String, u16>>>,
    given_up: HashSet<String>,
}

/// The request of an item of a batch.
pub(crate) fn request(item: &Value, step: &Map<String, Value>) -> Request {
    let mut body = item.as_object().expect("an operation").clone();
    let mut take = |name| match body.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let (name, id, token) = (take("operation"), take("id"), take("token"));
    let has = |name: &str| item.get(name).is_some();
    let several = item["resources"].as_array().into_iter().flatten();
    let resources: HashSet<&str> = several
        .chain([&item["resource"], &item["id"]])
        .filter_map(Value::as_str)
        .collect();
    let wait_ms = step.get("wait_ms").and_then(Value::as_f64).unwrap_or(0.0);
    if wait_ms > 0.0 {
        body.insert("wait_ms".into(), wait_ms.into());
    }
    let name = name.expect("a kind");
    let header = token.map_or(("Idempotency-Key", "key".into()), |one| {
        ("X-Lock-Token", one)
    });
    Request {
        header: Some(header),
        body: Some(Value::Object(body)),
        wait_ms,
        operation: Some(Operation {
            name: ["acquire", "extend", "release"]
                .into_iter()
                .find(|&one| one == name)
                .expect("a kind that is known"),
            id,
            resources: resources.into_iter().map(str::to_owned).collect(),
            sharing: match (has("mode"), has("limit")) {
                (true, _) => Sharing::Readers,
                (_, true) => Sharing::Permits,
                _ => Sharing::Nobody,
            },
            is_urgent: step.contains_key("urgent"),
            must_wait: step.contains_key("must_wait"),
        }),
        ..Request::new("POST", "/locks".into(), 5000.0)
    }
}

impl Together {
    pub fn take(&mut self, step: &Map<String, Value>) {
        let mut words = STEPS.iter().filter(|(word, _)| step.contains_key(*word));
        let (word, others) = words.next().expect("a known step");
        assert!(words.next().is_none(), "one step");
        let mut may: HashSet<&str> = others.split(' ').collect();
        may.insert(word);
        assert!(keys(step).is_subset(&may), "an unknown member");
        if *word == "leaves" {
            return self.leaves(step);
        }
        self.end();
        match *word {
            "ask" => self.ask(step),
            "lands" => self.lands(step),
            "overdue" => {
                let first = step["overdue"].as_str().expect("a name");
                let place = self.place(first);
                let number = self.under_way[place].number;
                self.departing = self.queue.leave(number);
            }
            "gives_up" => self.give_up(step["gives_up"].as_str().expect("a name")),
            _ => unreachable!("a step of STEPS"),
        }
    }

    /// Nothing else leaves.
    pub fn end(&self) {
        let first = self.departing.first().map(|flight| self.of(flight));
        assert_eq!(first, None, "it leaves, too");
    }

    fn of(&self, flight: &Flight) -> Vec<&str> {
        let calls = flight.calls.iter();
        calls.map(|call| &*self.names[&call.number]).collect()
    }

    fn place(&self, first: &str) -> usize {
        let mut all = self.under_way.iter();
        let place = all.position(|flight| self.of(flight)[0] == first);
        place.expect("it is under way")
    }

    fn ask(&mut self, step: &Map<String, Value>) {
        let name = step["ask"].as_str().expect("a name").to_owned();
        let number = self.queue.next_number();
        self.names.insert(number, name.clone());
        let told = Arc::clone(&self.told);
        let request = request(&step["operation"], step);
        let call = Call::new(number, request, Cancel::new(), move |answer| {
            locked(&told).insert(name, answer.status);
        });
        self.asked.push(call);
        if !step.contains_key("more") {
            let asked = std::mem::take(&mut self.asked);
            self.departing = self.queue.add(asked);
        }
    }

    fn leaves(&mut self, step: &Map<String, Value>) {
        assert!(!self.departing.is_empty(), "nothing leaves");
        let flight = self.departing.remove(0);
        assert_eq!(json!(self.of(&flight)), step["leaves"]);
        let is_batch = flight.calls.len() > 1 || step.contains_key("batch");
        assert_eq!(flight.is_batch, is_batch);
        let wait_ms = step.get("wait_ms").and_then(Value::as_f64);
        assert_eq!(flight.request().wait_ms, wait_ms.unwrap_or(0.0));
        self.under_way.push(flight);
    }

    fn lands(&mut self, step: &Map<String, Value>) {
        let place = self.place(step["lands"].as_str().expect("a name"));
        let flight = self.under_way.remove(place);
        let number = flight.number;
        let mut answer = match step["answer"].as_u64() {
            None => Answer::failed(Failure::Lost, String::new(), 0, 0.0),
            Some(status) => {
                let results = step.get("results").and_then(Value::as_array);
                let result = |status: &Value| json!({ "status": status, "problem": {} });
                let results: Option<Vec<Value>> =
                    results.map(|all| all.iter().map(result).collect());
                let body = json!({ "results": results }).to_string();
                Answer::read(status as u16, body.as_bytes(), None)
            }
        };
        answer.is_repeated = step.contains_key("stale");
        let (arrived, again) = flight.land(answer);
        for (call, answer) in arrived {
            call.answer(answer);
        }
        let mut told = std::mem::take(&mut *locked(&self.told));
        told.retain(|name, _| !self.given_up.contains(name));
        assert_eq!(json!(told), step["told"]);
        self.queue.add_again(again);
        self.departing = self.queue.leave(number);
    }

    fn give_up(&mut self, name: &str) {
        let mut all = self.names.iter();
        let number = all.find(|(_, one)| *one == name).map(|(&number, _)| number);
        drop(self.queue.take_out(number.expect("a name")));
        locked(&self.told).clear();
        self.given_up.insert(name.to_owned());
    }
}

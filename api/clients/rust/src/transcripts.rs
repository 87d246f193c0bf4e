// SPDX-License-Identifier: MIT
//! Plays the transcripts of tests/protocol without I/O; docs/client-authors.md says
//! what is in them. `TRANSCRIPTS`: their folder, if this crate is not in its
//! repository.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{mpsc, Arc, Mutex};

use serde_json::{json, Map, Value};

use crate::answer::{Answer, Failure, Request};
use crate::cancel::Cancel;
use crate::clock::FAKE;
use crate::coalesce::{Call, Queue};
use crate::error::{Error, Holder};
use crate::grant::{Grant, Hold};
use crate::replicas::Replicas;
use crate::sync::locked;
use crate::talk::{Acquire, Ask, Extend, GiveBack, Probe, Release, Rules, Step, Talk, Watch};
use crate::together::Together;
use crate::wanted::Wanted;

const TIMEOUT_MS: f64 = 5000.0;
const PLAYED: [&str; 11] = [
    "acquire",
    "busy",
    "cancel",
    "downgrade",
    "extend",
    "inspect",
    "release",
    "renew",
    "replicas",
    "together",
    "watch",
];
const MEMBERS: &str = "name why servers talk options begins steps";

/// What a step may have beside its first word.
const STEPS: [(&str, &str); 14] = [
    ("send", "of server headers body timeout_ms wait_ms"),
    ("again", "of timeout_ms"),
    ("answer", "of after_ms body grant text retry_after overdue"),
    ("pause_ms", "of"),
    ("end", "*"),
    ("hold", ""),
    ("leave", "of"),
    ("cancel", "gives_back"),
    ("pass_ms", ""),
    ("busy", ""),
    ("choose", "probes"),
    ("failed", ""),
    ("worked", ""),
    ("probed", "works"),
];

fn folder() -> PathBuf {
    std::env::var_os("TRANSCRIPTS").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../tests/protocol"
            ))
        },
        PathBuf::from,
    )
}

fn now() -> f64 {
    FAKE.with(|time| time.get().expect("a time"))
}

fn pass(ms: f64) {
    FAKE.with(|time| time.set(Some(time.get().unwrap_or(1e6) + ms)));
}

/// An exact time may be rounded; a range is of times drawn at random.
fn is_close(actual: f64, expected: &Value) -> bool {
    let limit = |number: usize| match expected.as_array() {
        Some(range) => range[number].as_f64().expect("a limit"),
        None => expected.as_f64().expect("a time"),
    };
    (limit(0) - 1.0..=limit(1) + 1.0).contains(&actual)
}

pub(crate) fn keys(of: &Map<String, Value>) -> HashSet<&str> {
    of.keys().map(String::as_str).collect()
}

enum Ended {
    Granted(Grant),
    Lock(Map<String, Value>),
    Done,
    Free,
}

enum Any {
    Acquire(Acquire),
    GiveBack(GiveBack),
    Extend(Extend),
    Release(Release),
    Inspect(Ask),
    Force(Ask),
    Watch(Watch),
    Renew(Rules, Arc<Hold>, Option<Extend>),
}

fn mapped<T>(step: Step<T>, end: impl FnOnce(T) -> Ended) -> Step<Ended> {
    match step {
        Step::Send(request) => Step::Send(request),
        Step::Pause(ms) => Step::Pause(ms),
        Step::Done(result) => Step::Done(result.map(end)),
    }
}

impl Talk for Any {
    type Out = Ended;

    fn next(&mut self, answer: Option<Answer>) -> Step<Ended> {
        match self {
            Any::Acquire(talk) => mapped(talk.next(answer), Ended::Granted),
            Any::GiveBack(talk) => mapped(talk.next(answer), |()| Ended::Done),
            Any::Extend(talk) => mapped(talk.next(answer), |_| Ended::Done),
            Any::Release(talk) => mapped(talk.next(answer), |()| Ended::Done),
            Any::Watch(talk) => mapped(talk.next(answer), Ended::Lock),
            Any::Inspect(talk) => mapped(talk.next(answer), |lock| match lock["held"].as_bool() {
                Some(true) => Ended::Lock(lock),
                _ => Ended::Free,
            }),
            Any::Force(talk) => mapped(talk.next(answer), |body| match body.is_empty() {
                true => Ended::Free,
                false => Ended::Done,
            }),
            Any::Renew(rules, hold, extend) => {
                let talk = match extend {
                    // until each renewal, the lock waits
                    None => {
                        *extend = Some(Extend::new(rules, Arc::clone(hold), None));
                        return Step::Pause((hold.grant().renew_at_ms - now()).max(0.0));
                    }
                    Some(talk) => talk,
                };
                match talk.next(answer) {
                    Step::Done(Ok(true)) => {
                        *extend = None;
                        self.next(None)
                    }
                    step => mapped(step, |_| Ended::Done),
                }
            }
        }
    }
}

/// A talk, and what it wants now.
struct Running {
    talk: Any,
    now: Step<Ended>,
    is_over: bool,
    asked: Map<String, Value>,
    replica: usize,
    sent_ms: f64,
    is_stale: bool,
    is_try: bool,
}

impl Running {
    fn new(mut talk: Any) -> Self {
        let now = talk.next(None);
        Running {
            talk,
            now,
            is_over: false,
            asked: Map::new(),
            replica: 0,
            sent_ms: 0.0,
            is_stale: false,
            is_try: false,
        }
    }

    fn go_on(&mut self, answer: Option<Answer>) {
        self.now = self.talk.next(answer);
    }

    /// Pauses that are none.
    fn skip(&mut self) {
        while let Step::Pause(ms) = self.now {
            if ms > 1.0 {
                return;
            }
            pass(ms);
            self.go_on(None);
        }
    }

    fn request(&self) -> &Request {
        match &self.now {
            Step::Send(request) => request,
            Step::Pause(ms) => panic!("no request, but a pause of {ms} ms"),
            Step::Done(Err(error)) => panic!("no request, but {error:?}"),
            Step::Done(Ok(_)) => panic!("no request: it has ended"),
        }
    }
}

struct Player {
    transcript: Value,
    grant: Map<String, Value>,
    rules: Rules,
    hold: Option<Arc<Hold>>,
    keys: BTreeMap<String, String>,
    running: BTreeMap<String, Running>,
    version: Option<Value>,
    is_busy: bool,
    together: Together,
}

impl Player {
    fn new(transcript: &Value, grant: &Value) -> Self {
        let members: HashSet<&str> = MEMBERS.split(' ').collect();
        assert!(keys(transcript.as_object().expect("a transcript")).is_subset(&members));
        FAKE.with(|time| time.set(Some(1e6)));
        let count = transcript["servers"].as_u64().unwrap_or(1);
        let names = (0..count).map(|number| format!("server-{number}"));
        let mut player = Player {
            transcript: transcript.clone(),
            grant: grant.as_object().cloned().unwrap_or_default(),
            rules: Rules {
                replicas: Arc::new(Replicas::new(names.collect())),
                timeout_ms: TIMEOUT_MS,
                log: None,
            },
            hold: None,
            keys: BTreeMap::new(),
            running: BTreeMap::new(),
            version: None,
            is_busy: false,
            together: Together::default(),
        };
        if !player.grant.is_empty() {
            let body = serde_json::to_vec(grant).expect("JSON");
            let mut answer = Answer::read(200, &body, None);
            answer.sent_ms = now();
            let grant = Grant::read(&answer).expect("a grant");
            player.hold = Some(Arc::new(Hold::new(vec!["a".into()], grant)));
        }
        player
    }

    fn take(&mut self, step: &Map<String, Value>) {
        if self.transcript["talk"] == "together" {
            return self.together.take(step);
        }
        let mut words = STEPS.iter().filter(|(word, _)| step.contains_key(*word));
        let (word, others) = words.next().expect("a known step");
        assert!(words.next().is_none(), "one step");
        let mut may: HashSet<&str> = others.split(' ').collect();
        may.insert(word);
        assert!(
            *others == "*" || keys(step).is_subset(&may),
            "an unknown member"
        );
        let value = &step[*word];
        let number = value.as_u64().unwrap_or(0) as usize;
        match *word {
            "send" => self.send(step),
            "again" => self.again(step),
            "answer" => self.answer(step),
            "pause_ms" => self.pause(step),
            "pass_ms" => pass(value.as_f64().expect("a time")),
            "busy" => self.is_busy = value.as_bool().expect("true or false"),
            "end" => self.end(step),
            "hold" => compare(&state(self.hold()), value.as_object().expect("members")),
            "leave" => {
                let talk = self.of(step);
                talk.skip();
                assert!(!matches!(talk.now, Step::Done(_)), "it has ended");
                talk.is_over = true;
            }
            "cancel" => self.cancel(step["gives_back"].as_bool().expect("true or false")),
            "choose" => {
                let (best, due) = self.rules.replicas.choose();
                let probes = step.get("probes").cloned().unwrap_or_else(|| json!([]));
                assert_eq!((best, json!(due)), (number, probes));
            }
            "failed" => self.rules.replicas.avoid(number),
            "worked" => self.rules.replicas.works(number),
            "probed" => {
                let rules = self.rules.clone();
                let mut probe = Probe {
                    rules,
                    replica: number,
                };
                match probe.next(None) {
                    Step::Send(request) => assert_eq!(request.path, "/readyz"),
                    _ => panic!("no probe"),
                }
                let works = step["works"].as_bool().expect("true or false");
                probe.next(Some(Answer::read(if works { 200 } else { 503 }, b"", None)));
            }
            _ => unreachable!("a step of STEPS"),
        }
    }

    // ---- the talks

    fn hold(&self) -> &Arc<Hold> {
        self.hold.as_ref().expect("a grant")
    }

    fn of(&mut self, step: &Map<String, Value>) -> &mut Running {
        let name = step.get("of").unwrap_or(&self.transcript["talk"]);
        let name = name.as_str().expect("a talk").to_owned();
        if self.running.get(&name).map_or(true, |talk| talk.is_over) {
            let kind = name.split(' ').next().expect("a word");
            let talk = Running::new(self.start(kind));
            self.running.insert(name.clone(), talk);
        }
        self.running.get_mut(&name).expect("a talk")
    }

    fn start(&self, kind: &str) -> Any {
        let options = self.transcript.get("options").cloned().unwrap_or_default();
        let text = |name: &str| options[name].as_str().expect("a text");
        let rules = &self.rules;
        let hold = || Arc::clone(self.hold());
        match kind {
            "acquire" => Any::Acquire(Acquire::new(rules, wanted(&options))),
            "renew" => Any::Renew(rules.clone(), hold(), None),
            "extend" => Any::Extend(Extend::new(rules, hold(), options["ttl_ms"].as_u64())),
            "downgrade" => Any::Extend(Extend::downgrade(rules, hold())),
            "release" => Any::Release(Release::new(rules, hold())),
            "inspect" => Any::Inspect(Ask::holder(rules, text("resource"))),
            "watch" => Any::Watch(Watch::new(rules, text("resource"), self.version.clone())),
            "force" => {
                let which = options["fencing_token"].to_string();
                Any::Force(Ask::force(rules, text("id"), which.trim_matches('"')))
            }
            _ => panic!("no talk {kind}"),
        }
    }

    // ---- the steps

    fn send(&mut self, step: &Map<String, Value>) {
        let replicas = Arc::clone(&self.rules.replicas);
        let is_busy = self.is_busy;
        let talk = self.of(step);
        talk.skip();
        talk.asked = step.clone();
        talk.replica = replicas.choose().0;
        talk.sent_ms = now();
        let (request, is_try) = leaving(talk.request(), is_busy);
        talk.is_try = is_try;
        let replica = talk.replica;
        assert_eq!(
            json!(format!("{} {}", request.method, request.path)),
            step["send"]
        );
        assert_eq!(json!(replica), step["server"]);
        assert_eq!(request.body.as_ref(), step.get("body"));
        let time = |name, usual: f64| step.get(name).cloned().unwrap_or_else(|| json!(usual));
        assert!(
            is_close(request.timeout_ms, &time("timeout_ms", TIMEOUT_MS)),
            "{request:?}"
        );
        assert!(
            is_close(request.wait_ms, &time("wait_ms", 0.0)),
            "{request:?}"
        );
        let none = json!({});
        let headers = step.get("headers").unwrap_or(&none);
        let headers = headers.as_object().expect("headers");
        assert_eq!(
            headers.len(),
            usize::from(request.header.is_some()),
            "{request:?}"
        );
        if let Some((name, value)) = &request.header {
            let text = headers[*name].as_str().expect("a text").to_owned();
            if text.starts_with('$') {
                let key = self.keys.entry(text).or_insert_with(|| value.clone());
                assert_eq!(key, value);
            } else {
                assert_eq!(&text, value);
            }
        }
        let different: HashSet<_> = self.keys.values().collect();
        assert_eq!(different.len(), self.keys.len());
    }

    fn again(&mut self, step: &Map<String, Value>) {
        let mut asked = self.of(step).asked.clone();
        asked.extend(step.clone());
        let server = asked.remove("again").expect("a number");
        asked.insert("server".into(), server);
        self.send(&asked);
    }

    fn answer(&mut self, step: &Map<String, Value>) {
        pass(
            step.get("after_ms")
                .map_or(0.0, |ms| ms.as_f64().expect("a time")),
        );
        let replicas = Arc::clone(&self.rules.replicas);
        let grant = self.grant.clone();
        let talk = self.of(step);
        talk.request();
        let is_overdue = step.get("overdue").map_or(false, |is| is == &json!(true));
        if is_overdue {
            replicas.avoid(talk.replica);
        }
        let failure = match step["answer"].as_str() {
            Some("stale") => {
                talk.is_stale = true; // the same request again, at once
                return;
            }
            Some("lost") => Some(Failure::Lost),
            Some("unsent") => Some(Failure::Unsent),
            Some("untrusted") => Some(Failure::Untrusted),
            Some(other) => panic!("an unknown answer {other}"),
            None => None,
        };
        let mut answer = match failure {
            Some(failure) => Answer::failed(failure, String::new(), 0, 0.0),
            None => response(step, grant),
        };
        answer.replica = talk.replica;
        answer.sent_ms = talk.sent_ms;
        answer.is_repeated = talk.is_stale;
        answer.is_try = talk.is_try;
        talk.is_stale = false;
        if answer.is_good() && !is_overdue {
            replicas.works(talk.replica);
        }
        talk.go_on(Some(answer));
    }

    fn pause(&mut self, step: &Map<String, Value>) {
        let talk = self.of(step);
        match talk.now {
            Step::Pause(ms) => {
                assert!(is_close(ms, &step["pause_ms"]), "it pauses for {ms} ms");
                pass(ms);
            }
            _ => panic!("no pause: {:?}", talk.request()),
        }
        talk.go_on(None);
    }

    fn cancel(&mut self, gives_back: bool) {
        let name = self.transcript["talk"].as_str().expect("a talk").to_owned();
        let talk = self.running.remove(&name).expect("a talk");
        let is_under_way = matches!(talk.now, Step::Send(_));
        let attempt = match talk.talk {
            Any::Acquire(acquire) => acquire.attempt,
            _ => panic!("no acquire"),
        };
        assert_eq!(attempt.may_be_granted || is_under_way, gives_back);
        if gives_back {
            let talk = GiveBack::new(&self.rules, attempt);
            self.running.insert(name, Running::new(Any::GiveBack(talk)));
        }
    }

    fn end(&mut self, step: &Map<String, Value>) {
        let is_watch = self.transcript["talk"] == "watch";
        let talk = self.of(step);
        talk.skip();
        let mut version = None;
        let (is, says) = match &talk.now {
            Step::Done(Err(error)) => failed(error),
            Step::Done(Ok(Ended::Granted(grant))) => (
                "granted",
                state(&Hold::new(vec!["a".into()], grant.clone())),
            ),
            Step::Done(Ok(Ended::Lock(lock))) => {
                version = is_watch.then(|| lock["version"].clone());
                match lock["held"].as_bool() {
                    Some(true) => ("holder", described(lock)),
                    _ => ("free", json!({})),
                }
            }
            Step::Done(Ok(Ended::Done)) => ("done", json!({})),
            Step::Done(Ok(Ended::Free)) => ("free", json!({})),
            _ => panic!("it goes on"),
        };
        assert_eq!(is, step["end"], "{says}");
        let mut expected = step.clone();
        expected.retain(|name, _| name != "end" && name != "of");
        compare(&says, &expected);
        talk.is_over = true;
        self.version = version.or_else(|| self.version.take());
    }
}

/// The request as the queue lets it leave, alone or beside another one; and whether it
/// is a try.
fn leaving(request: &Request, is_busy: bool) -> (Request, bool) {
    let mut queue = Queue::default();
    if is_busy {
        let other = json!({ "operation": "release", "id": "other", "token": "1.x" });
        let other = crate::together::request(&other, &Map::new());
        queue.add(vec![Call::new(1, other, Cancel::new(), drop)]);
    }
    let (tell, told) = mpsc::channel();
    let tell = move |answer: Answer| tell.send(answer.is_try).expect("it is read");
    let call = Call::new(2, request.clone(), Cancel::new(), tell);
    let mut calls = queue.add(vec![call]).remove(0).calls;
    let request = calls[0].request.clone();
    calls.remove(0).answer(Answer::read(200, b"", None));
    (request, told.recv().expect("it is told"))
}

fn wanted(options: &Value) -> Wanted {
    let known = "resources ttl_ms wait_ms owner limit permits shared";
    let known: HashSet<&str> = known.split(' ').collect();
    assert!(keys(options.as_object().expect("options")).is_subset(&known));
    let resources = options["resources"].as_array().expect("resources");
    let text = |of: &Value| of.as_str().expect("a text").to_owned();
    let permits = options["permits"].as_u64().unwrap_or(1);
    Wanted {
        resources: resources.iter().map(text).collect(),
        ttl_ms: options["ttl_ms"].as_u64(),
        wait_ms: options["wait_ms"].as_f64(),
        owner: options["owner"].as_str().map(str::to_owned),
        permits: options["limit"].as_u64().map(|limit| (limit, permits)),
        is_shared: options["shared"] == json!(true),
    }
}

fn response(step: &Map<String, Value>, mut grant: Map<String, Value>) -> Answer {
    let content = match (step.get("text"), step.get("grant"), step.get("body")) {
        (Some(text), ..) => text.as_str().expect("a text").to_owned(),
        (_, Some(changes), _) => {
            grant.extend(changes.as_object().expect("changes").clone());
            Value::Object(grant).to_string()
        }
        (.., Some(body)) => body.to_string(),
        _ => panic!("an answer without a body"),
    };
    let status = step["answer"].as_u64().expect("a status") as u16;
    let retry_after = step.get("retry_after").map(|value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    });
    Answer::read(status, content.as_bytes(), retry_after.as_deref())
}

fn holder(of: &Holder) -> Value {
    json!({
        "owner": of.owner, "fencing_token": of.fencing_token, "readers": of.readers,
        "remaining_ms": of.remaining.map(|left| left.as_millis() as u64),
    })
}

/// A lock as `get` and `watch` report it.
fn described(lock: &Map<String, Value>) -> Value {
    let held = crate::HeldLock::read(lock);
    json!({
        "owner": held.owner, "fencing_token": held.fencing_token, "readers": held.readers,
        "remaining_ms": held.remaining.map(|left| left.as_millis() as u64),
        "version": lock.get("version"),
    })
}

/// How it failed, and what that says.
fn failed(error: &Error) -> (&'static str, Value) {
    match error {
        Error::Held { holder: of, .. } => ("held", holder(of)),
        Error::Lost(_) => ("lost", json!({})),
        Error::Unavailable(_) => ("unavailable", json!({})),
        Error::RateLimited { retry_after, .. } => {
            let ms = retry_after.as_millis() as u64;
            ("rate_limited", json!({ "retry_after_ms": ms }))
        }
        Error::Untrusted(_) => ("untrusted", json!({})),
        Error::Unauthorized { code, .. } => ("unauthorized", json!({"code": code, "status": 401})),
        Error::Forbidden { code, .. } => ("forbidden", json!({"code": code, "status": 403})),
        Error::Refused { status, code, .. } => ("refused", json!({"code": code, "status": status})),
        Error::NotReleased(_) => ("not_released", json!({})),
        Error::Cancelled | Error::Invalid(_) => panic!("{error:?}"),
    }
}

fn state(hold: &Hold) -> Value {
    let grant = hold.grant();
    json!({
        "token": grant.token, "slots": grant.slots, "fencing_token": grant.fencing_token,
        "shared": grant.is_shared, "work_ms": hold.remaining_ms(),
        "validity_ms": hold.validity_ms(), "renew_ms": (grant.renew_at_ms - now()).max(0.0),
    })
}

fn compare(is: &Value, expected: &Map<String, Value>) {
    for (name, value) in expected {
        let actual = is.get(name).unwrap_or_else(|| panic!("it has no {name}"));
        let is_same = match (actual.as_f64(), name.ends_with("_ms")) {
            (Some(ms), true) => is_close(ms, value),
            _ => actual == value,
        };
        assert!(is_same, "{name} is {actual}, not {value}");
    }
}

/// What is played now, for the report of a panic.
fn said(text: String) {
    static SAID: Mutex<()> = Mutex::new(());
    let _one = locked(&SAID);
    println!("{text}");
}

fn play(file: &str) {
    let content = std::fs::read(folder().join(format!("{file}.json"))).expect("a file");
    let content: Value = serde_json::from_slice(&content).expect("JSON");
    let transcripts = content["transcripts"].as_array().expect("transcripts");
    for transcript in transcripts {
        said(format!("{file}: {}", transcript["name"]));
        let begins = transcript["begins"].as_str().unwrap_or("none");
        let begins = content.get(begins).and_then(Value::as_array);
        let steps = transcript["steps"].as_array().expect("steps");
        let mut player = Player::new(transcript, &content["grant"]);
        for step in begins.into_iter().flatten().chain(steps) {
            said(format!("  {step}"));
            let mut step = step.as_object().expect("a step").clone();
            if let Some(server) = step.remove("asks") {
                let mut asks = content["request"].as_object().expect("a request").clone();
                asks.insert("server".into(), server);
                asks.extend(step);
                step = asks;
            }
            player.take(&step);
        }
        player.together.end();
        for (name, talk) in &player.running {
            assert!(talk.is_over, "{name} did not end");
        }
    }
    assert!(transcripts.len() > 3);
}

macro_rules! played {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            play(stringify!($name));
        })*
    };
}

played!(acquire busy cancel downgrade extend inspect release renew replicas together watch);

#[test]
fn no_file_is_forgotten() {
    let mut known = PLAYED.map(str::to_owned);
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().map_or(false, |kind| kind == "json"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into())
        .collect();
    known.sort();
    names.sort();
    assert_eq!(known[..], names);
}

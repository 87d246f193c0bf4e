// SPDX-License-Identifier: MIT
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::caller::{Caller, Ran};
use crate::cancel::Cancel;
use crate::error::Error;
use crate::http::Target;
use crate::identity::{variable, Files, Identity};
use crate::lock::LockRequest;
use crate::replicas::Replicas;
use crate::talk::{self, percent_encoded, Ask, Rules};

const DEFAULT_URL: &str = "http://127.0.0.1:8080";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer ones, such as `Duration::MAX`, are too long for the clock.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the last `Client` waits for what is released in the background.
pub(crate) const LAST: Duration = Duration::from_secs(2);
/// How many locks `locks` asks for at once.
const PAGE: usize = 1000;

/// What a client is made of. What is omitted comes from the environment:
/// `REDLOCKD_URL` (several URLs with commas between them), `REDLOCKD_AUTH_TOKEN` or
/// `REDLOCKD_AUTH_TOKEN_FILE`, `REDLOCKD_CACERT`, `REDLOCKD_CERT`, `REDLOCKD_KEY`.
#[derive(Clone, Default)]
pub struct ClientBuilder {
    urls: Vec<String>,
    timeout: Option<Duration>,
    files: Files,
    log: Option<talk::Log>,
}

impl ClientBuilder {
    /// Of the replicas, in the order in which they are asked, with commas between them.
    pub fn urls(mut self, urls: &str) -> Self {
        self.urls = urls.split(',').map(str::to_owned).collect();
        self
    }

    /// For a connection, and for a response: 5 s if omitted.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The access token.
    pub fn auth_token(mut self, token: &str) -> Self {
        self.files.auth_token = Some(token.to_owned());
        self
    }

    /// A file with one line, the access token. It is read again after a 401.
    pub fn auth_token_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.files.auth_token_file = Some(file.into());
        self
    }

    /// A PEM file with the CAs to trust, instead of those of the system.
    pub fn ca_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.files.ca_file = Some(file.into());
        self
    }

    /// A PEM file with the client's own certificate.
    pub fn cert_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.files.cert_file = Some(file.into());
        self
    }

    /// A PEM file with the key of the certificate, without a passphrase. If omitted, it
    /// is in the file of the certificate.
    pub fn key_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.files.key_file = Some(file.into());
        self
    }

    /// Called with what is worth a warning, and is no error of a call. It must not
    /// wait: threads that extend locks call it.
    pub fn on_warning(mut self, log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.log = Some(Arc::new(log));
        self
    }

    /// Reads the files, and sends nothing. Fails with `Error::Invalid`.
    pub fn build(self) -> Result<Client, Error> {
        let mut urls = self.urls;
        if urls.is_empty() {
            let variable = variable("REDLOCKD_URL").unwrap_or_default();
            urls = variable.split(',').map(str::to_owned).collect();
        }
        urls.retain(|url| !url.trim().is_empty());
        if urls.is_empty() {
            urls.push(DEFAULT_URL.into());
        }
        let mut targets = Vec::new();
        for url in &urls {
            let target = Target::parse(url.trim());
            targets.push(target.ok_or_else(|| {
                // the start of it may be a password
                let shown = url.rsplit('@').next().unwrap_or("");
                Error::Invalid(format!("not an http:// or https:// URL: {shown}"))
            })?);
        }
        let timeout = self.timeout.unwrap_or(DEFAULT_TIMEOUT);
        if timeout.is_zero() {
            return Err(Error::Invalid("a timeout is longer than 0 s".into()));
        }
        let names = targets.iter().map(|target| target.name.clone()).collect();
        let rules = Rules {
            replicas: Arc::new(Replicas::new(names)),
            timeout_ms: timeout.min(LONGEST_TIMEOUT).as_secs_f64() * 1000.0,
            log: self.log,
        };
        let identity = Identity::new(self.files)?;
        let caller = Arc::new(Caller::new(rules, targets, identity));
        let handle = Arc::new(Handle(Arc::clone(&caller)));
        Ok(Client { caller, handle })
    }
}

/// The last one waits for what is released in the background.
struct Handle(Arc<Caller>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.workers.wait_for_last(LAST);
    }
}

/// Connections to the servers, for any number of locks and threads. A clone shares
/// them.
///
/// When the last clone is dropped, it waits for the guards that were dropped before
/// and are still being released, two seconds at most.
#[derive(Clone)]
pub struct Client {
    pub(crate) caller: Arc<Caller>,
    #[allow(dead_code)] // it is dropped
    handle: Arc<Handle>,
}

impl Client {
    /// A client of these replicas, with commas between them; all else is from the
    /// environment.
    pub fn new(urls: &str) -> Result<Client, Error> {
        Client::builder().urls(urls).build()
    }

    /// A client as the environment says; see [`ClientBuilder`].
    pub fn from_env() -> Result<Client, Error> {
        Client::builder().build()
    }

    /// For more than URLs.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A lock that nothing has asked for yet.
    pub fn lock(&self, resource: &str) -> LockRequest {
        LockRequest::new(Arc::clone(&self.caller), vec![resource.to_owned()])
    }

    /// A lock of all these resources, or of none.
    pub fn lock_all<T: Into<String>>(&self, resources: impl IntoIterator<Item = T>) -> LockRequest {
        let resources = resources.into_iter().map(Into::into).collect();
        LockRequest::new(Arc::clone(&self.caller), resources)
    }

    /// Who holds the lock; `None`: nobody.
    pub fn get(&self, resource: &str) -> Result<Option<HeldLock>, Error> {
        let talk = Ask::holder(&self.caller.rules, resource);
        Ok(held(&self.caller.run(talk)?))
    }

    /// The locks that are held, with resources that begin with the prefix. A lock that
    /// is granted or expires meanwhile may be listed or not.
    pub fn locks(&self, prefix: &str) -> Locks {
        Locks {
            caller: Arc::clone(&self.caller),
            prefix: percent_encoded(prefix),
            page: VecDeque::new(),
            seen: HashSet::new(),
            cursor: Some(String::new()),
        }
    }

    /// Who holds the lock, now and whenever it changes hands; `None`: nobody. Readers
    /// who join others, or leave some behind, are no change. It misses nobody who holds
    /// the lock for a second, and goes on while servers fail.
    pub fn watch(&self, resource: &str) -> Watch {
        Watch {
            caller: Arc::clone(&self.caller),
            resource: resource.to_owned(),
            version: None,
            cancel: Cancel::new(),
        }
    }

    /// Releases the lock of a dead holder; `locks` has its ID and fencing token. The
    /// holder is not notified. `false`: no lock with this fencing token is held any
    /// more.
    pub fn force_release(&self, id: &str, fencing_token: u64) -> Result<bool, Error> {
        self.force(id, &fencing_token.to_string())
    }

    /// Releases the locks of all readers of a resource, in the same way.
    pub fn force_release_readers(&self, id: &str) -> Result<bool, Error> {
        self.force(id, "all")
    }

    fn force(&self, id: &str, which: &str) -> Result<bool, Error> {
        let talk = Ask::force(&self.caller.rules, id, which);
        Ok(!self.caller.run(talk)?.is_empty())
    }

    /// Closes the connections that are idle; the next call opens new ones.
    pub fn close_idle(&self) {
        self.caller.close();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("urls", &self.caller.rules.replicas.names)
            .finish_non_exhaustive()
    }
}

/// A lock that somebody holds, as a server described it. `None`: not known, as for
/// locks of other libraries, and of readers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldLock {
    /// Of the lock, for `force_release`.
    pub id: String,
    /// What is locked.
    pub resources: Vec<String>,
    /// The label that the holder gave itself.
    pub owner: Option<String>,
    /// Of the holder.
    pub fencing_token: Option<u64>,
    /// How long until it expires, unless it is extended.
    pub remaining: Option<Duration>,
    /// Clients that wait for it at the server that was asked.
    pub waiters: u64,
    /// How many readers hold it; 0: it is exclusive.
    pub readers: u64,
    /// Of permits.
    pub slots: Vec<u64>,
}

impl HeldLock {
    pub(crate) fn read(of: &Map<String, Value>) -> HeldLock {
        let text = |name| of.get(name).and_then(Value::as_str).map(str::to_owned);
        let all = |name| of.get(name).and_then(Value::as_array).into_iter().flatten();
        let mut resources: Vec<String> = all("resources")
            .filter_map(|one| one.as_str().map(str::to_owned))
            .collect();
        if resources.is_empty() {
            resources.extend(text("resource"));
        }
        let holder = talk::holder(of);
        HeldLock {
            id: text("id").unwrap_or_default(),
            resources,
            owner: holder.owner,
            fencing_token: holder.fencing_token,
            remaining: holder.remaining,
            waiters: of.get("waiters").and_then(Value::as_u64).unwrap_or(0),
            readers: holder.readers.unwrap_or(0),
            slots: all("slots").filter_map(Value::as_u64).collect(),
        }
    }
}

pub(crate) fn held(of: &Map<String, Value>) -> Option<HeldLock> {
    let is_held = of.get("held").and_then(Value::as_bool) == Some(true);
    is_held.then(|| HeldLock::read(of))
}

/// The locks that are held, a page at a time. It ends after an error.
pub struct Locks {
    caller: Arc<Caller>,
    prefix: String,
    page: VecDeque<HeldLock>,
    /// A lock may be on two pages.
    seen: HashSet<String>,
    /// `None`: this was the last page.
    cursor: Option<String>,
}

impl Locks {
    fn read_page(&mut self, cursor: &str) -> Result<(), Error> {
        let mut path = format!("/locks?page_size={PAGE}");
        for (name, value) in [
            ("prefix", &self.prefix),
            ("cursor", &percent_encoded(cursor)),
        ] {
            if !value.is_empty() {
                path.extend(["&", name, "=", value]);
            }
        }
        let talk = Ask::new(&self.caller.rules, "the list", path, "locks");
        let body = self.caller.run(talk)?;
        let next = body.get("next_cursor").and_then(Value::as_str);
        self.cursor = next.map(str::to_owned);
        let locks = body.get("locks").and_then(Value::as_array);
        let locks = locks.into_iter().flatten().filter_map(Value::as_object);
        for lock in locks.map(HeldLock::read) {
            if self.seen.insert(lock.id.clone()) {
                self.page.push_back(lock);
            }
        }
        Ok(())
    }
}

impl Iterator for Locks {
    type Item = Result<HeldLock, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.page.is_empty() {
            let cursor = self.cursor.take()?;
            if let Err(error) = self.read_page(&cursor) {
                return Some(Err(error));
            }
        }
        self.page.pop_front().map(Ok)
    }
}

/// Each holder of a lock, as it changes hands. After an error, the next call asks again.
pub struct Watch {
    pub(crate) caller: Arc<Caller>,
    resource: String,
    version: Option<Value>,
    pub(crate) cancel: Cancel,
}

impl Watch {
    /// Ends when this is cancelled.
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    pub(crate) fn talk(&self) -> talk::Watch {
        let version = self.version.clone();
        talk::Watch::new(&self.caller.rules, &self.resource, version)
    }

    pub(crate) fn took(&mut self, ran: Ran<talk::Watch>) -> Option<<Self as Iterator>::Item> {
        match ran {
            Ran::Stopped { .. } => None,
            Ran::Done(Err(error)) => Some(Err(error)),
            Ran::Done(Ok(lock)) => {
                self.version = lock.get("version").cloned();
                Some(Ok(held(&lock)))
            }
        }
    }
}

impl Iterator for Watch {
    type Item = Result<Option<HeldLock>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let ran = self.caller.run_until(self.talk(), &self.cancel);
        self.took(ran)
    }
}

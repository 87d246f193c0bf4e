// SPDX-License-Identifier: MIT
//! Stories of the crate for Rust over a redlockd at REDLOCKD_URL; run.sh puts them
//! into a copy of the crate.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use redlockd_client::{Cancel, Client, Error};

const SECOND: Duration = Duration::from_secs(1);

fn client() -> Client {
    assert!(std::env::var("REDLOCKD_URL").is_ok(), "REDLOCKD_URL is set");
    Client::from_env().expect("a client")
}

fn until_free(resource: &str, limit: Duration) {
    let other = client();
    let end = Instant::now() + limit;
    while other.get(resource).unwrap().is_some() && Instant::now() < end {
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(other.get(resource).unwrap(), None);
}

/// Stands before the first redlockd, and counts the requests.
#[derive(Default)]
struct Proxy {
    requests: AtomicUsize,
    batches: AtomicUsize,
    /// So many responses to batches are cut off.
    cuts: AtomicUsize,
    /// Responses wait.
    is_paused: Mutex<bool>,
    moved: Condvar,
}

impl Proxy {
    fn client() -> (Arc<Proxy>, Client) {
        let proxy = Arc::new(Proxy::default());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serves = Arc::clone(&proxy);
        thread::spawn(move || {
            for socket in listener.incoming() {
                let serves = Arc::clone(&serves);
                thread::spawn(move || serves.serve(socket.unwrap()));
            }
        });
        (proxy, Client::new(&url).unwrap())
    }

    fn pause(&self, is_paused: bool) {
        *self.is_paused.lock().unwrap() = is_paused;
        self.moved.notify_all();
    }

    fn serve(self: Arc<Self>, mut here: TcpStream) {
        let urls = std::env::var("REDLOCKD_URL").unwrap();
        let server = urls
            .split(',')
            .next()
            .unwrap()
            .trim_start_matches("http://");
        let mut there = TcpStream::connect(server).unwrap();
        let (mut from, mut to) = (there.try_clone().unwrap(), here.try_clone().unwrap());
        let (asks, cuts) = mpsc::channel();
        let responds = Arc::clone(&self);
        thread::spawn(move || {
            let mut bytes = [0; 65536];
            loop {
                let count = from.read(&mut bytes).unwrap_or(0);
                let paused = responds.is_paused.lock().unwrap();
                drop(responds.moved.wait_while(paused, |paused| *paused).unwrap());
                let is_cut = count > 0 && cuts.try_recv() == Ok(true);
                if count == 0 || is_cut || to.write_all(&bytes[..count]).is_err() {
                    let _ = to.shutdown(Shutdown::Both);
                    return;
                }
            }
        });
        let mut bytes = [0; 65536];
        loop {
            let count = here.read(&mut bytes).unwrap_or(0);
            let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
            if text.contains(" HTTP/1.1\r\n") {
                self.requests.fetch_add(1, SeqCst);
                let is_batch = text.starts_with("POST /batch");
                self.batches.fetch_add(usize::from(is_batch), SeqCst);
                let fewer = |left: usize| left.checked_sub(1);
                let is_cut = is_batch && self.cuts.fetch_update(SeqCst, SeqCst, fewer).is_ok();
                let _ = asks.send(is_cut);
            }
            if count == 0 || there.write_all(&bytes[..count]).is_err() {
                let _ = there.shutdown(Shutdown::Write);
                return;
            }
        }
    }
}

#[test]
fn a_guard_holds_the_lock_until_it_is_released() {
    let (client, other) = (client(), client());
    let guard = client.lock("run").owner("web-3").acquire().unwrap();
    guard.check().unwrap();
    let token = guard.fencing_token();
    match other.lock("run").wait(Duration::ZERO).acquire() {
        Err(Error::Held { holder, message }) => {
            assert_eq!(holder.owner.as_deref(), Some("web-3"), "{message}");
            assert_eq!(holder.fencing_token, Some(token));
            assert!(holder.remaining.unwrap() > SECOND);
        }
        result => panic!("{result:?}"),
    }
    assert!(other.lock("run").try_acquire().unwrap().is_none());
    let held = other.get("run").unwrap().unwrap();
    assert_eq!((held.fencing_token, held.readers), (Some(token), 0));
    let shown = format!(r#"Guard {{ name: "run", fencing_token: {token}, .. }}"#);
    assert_eq!(format!("{guard:?}"), shown); // without the token, a secret
    guard.release().unwrap();
    assert_eq!(other.get("run").unwrap(), None);
    let next = client.lock("run").acquire().unwrap();
    assert!(next.fencing_token() > token);
    next.release().unwrap();
}

#[test]
fn a_guard_that_is_dropped_is_released_before_the_last_client_is_gone() {
    let one = client();
    drop(one.lock("dropped").acquire().unwrap());
    drop(one);
    assert_eq!(client().get("dropped").unwrap(), None);
}

#[test]
fn threads_renew_it() {
    let client = client();
    let locks = (0..20).map(|i| client.lock(&format!("renewed{i}")).ttl(SECOND));
    let guards: Vec<_> = locks.map(|lock| lock.acquire().unwrap()).collect();
    thread::sleep(SECOND * 5 / 2);
    for guard in guards {
        guard.check().unwrap();
        assert!(guard.remaining() > Duration::ZERO);
        guard.release().unwrap();
    }
}

#[test]
fn a_forced_release_is_noticed_at_the_next_renewal() {
    let (client, other) = (client(), client());
    let (send, losses) = mpsc::channel();
    let send = Mutex::new(send);
    let guard = client
        .lock("forced")
        .ttl(SECOND)
        .on_loss(move |loss| send.lock().unwrap().send(loss.clone()).unwrap())
        .acquire()
        .unwrap();
    let held = other.locks("forced").next().unwrap().unwrap();
    let token = held.fencing_token.unwrap();
    assert!(other.force_release(&held.id, token).unwrap());
    assert!(!other.force_release(&held.id, token).unwrap());
    let loss = losses.recv_timeout(SECOND * 5).unwrap();
    assert!(loss.to_string().contains("the lock ended"), "{loss}");
    assert_eq!(guard.check(), Err(loss.clone()));
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert!(guard.extend(SECOND).unwrap_err().is_lost());
    assert_eq!(guard.release(), Err(loss));
}

#[test]
fn several_and_permits() {
    let (client, other) = (client(), client());
    let both = client.lock_all(["b", "a"]).acquire().unwrap();
    assert!(other.lock("a").try_acquire().unwrap().is_none());
    both.release().unwrap();
    let permits = client.lock("pool").permits(3, 2).acquire().unwrap();
    assert_eq!(permits.slots().len(), 2);
    assert!(other
        .lock("pool")
        .permits(3, 2)
        .try_acquire()
        .unwrap()
        .is_none());
    let one = other.lock("pool").permits(3, 1).try_acquire().unwrap();
    assert_eq!(one.unwrap().slots().len(), 1);
    permits.release().unwrap();
}

#[test]
fn readers_and_a_downgrade() {
    let (client, other) = (client(), client());
    let guard = client.lock("catalog").acquire().unwrap();
    let reader = other.lock("catalog").shared();
    assert!(!guard.is_shared() && reader.try_acquire().unwrap().is_none());
    guard.downgrade().unwrap();
    assert!(guard.is_shared());
    let reader = reader.try_acquire().unwrap().unwrap();
    assert_eq!(client.get("catalog").unwrap().unwrap().readers, 2);
    guard.release().unwrap();
    reader.release().unwrap();
    let readers = (0..2).map(|_| client.lock("catalog").shared().acquire().unwrap());
    let readers: Vec<_> = readers.collect();
    assert!(other.force_release_readers("catalog").unwrap());
    assert!(!other.force_release_readers("catalog").unwrap());
    for reader in readers {
        assert!(reader.release().unwrap_err().is_lost());
    }
}

#[test]
fn extend_asks_for_another_ttl_and_what_is_wrong_is_refused() {
    let client = client();
    let guard = client.lock("longer").ttl(SECOND * 2).acquire().unwrap();
    guard.extend(SECOND * 20).unwrap();
    assert!(guard.remaining() > SECOND * 15);
    match guard.extend(SECOND * 999) {
        Err(Error::Refused { status, code, .. }) => {
            assert_eq!((status, code.as_str()), (400, "invalid_request"));
        }
        result => panic!("{result:?}"),
    }
    guard.release().unwrap();
    let none: [&str; 0] = [];
    for wrong in [
        client.lock_all(none),
        client.lock_all(["a", "b"]).permits(2, 1),
        client.lock("a").permits(2, 1).shared(),
    ] {
        assert!(matches!(wrong.acquire(), Err(Error::Invalid(_))));
    }
    for wrong in [
        "ftp://a",
        "a:1",
        "http://",
        "http://a/?b",
        "http://a:b",
        "http://::1",
    ] {
        assert!(
            matches!(Client::new(wrong), Err(Error::Invalid(_))),
            "{wrong}"
        );
    }
    let hidden = Client::new("ftp://user:password@a").unwrap_err();
    assert!(!hidden.to_string().contains("password"), "{hidden}");
}

#[test]
fn an_acquire_that_is_cancelled_leaves_no_lock() {
    let (client, other) = (client(), client());
    let held = other.lock("cancelled").acquire().unwrap();
    let cancel = Cancel::new();
    let later = cancel.clone();
    let began = Instant::now();
    let thread = thread::spawn(move || {
        thread::sleep(SECOND / 5);
        later.cancel();
    });
    let result = client.lock("cancelled").cancel(&cancel).acquire();
    assert_eq!(result.unwrap_err(), Error::Cancelled);
    assert!(began.elapsed() < SECOND * 5 / 2);
    thread.join().unwrap();
    held.release().unwrap();
    until_free("cancelled", SECOND * 2);
    for i in 0..40 {
        let cancel = Cancel::new();
        let later = cancel.clone();
        let thread = thread::spawn(move || {
            thread::sleep(Duration::from_micros(200 * i));
            later.cancel();
        });
        match client.lock("cancelled").cancel(&cancel).acquire() {
            Ok(guard) => guard.release().unwrap(),
            Err(error) => assert_eq!(error, Error::Cancelled),
        }
        thread.join().unwrap();
    }
    until_free("cancelled", SECOND * 2);
}

#[test]
fn a_watch_reports_each_holder() {
    let (client, other) = (client(), client());
    let cancel = Cancel::new();
    let mut watch = client.watch("watched").cancel(&cancel);
    assert_eq!(watch.next().unwrap().unwrap(), None);
    let guard = other.lock("watched").owner("web-3").acquire().unwrap();
    let holder = watch.next().unwrap().unwrap().unwrap();
    assert_eq!(holder.owner.as_deref(), Some("web-3"));
    guard.release().unwrap();
    assert_eq!(watch.next().unwrap().unwrap(), None);
    let thread = thread::spawn(move || watch.next().is_none());
    thread::sleep(SECOND / 5);
    cancel.cancel();
    let began = Instant::now();
    assert!(thread.join().unwrap());
    assert!(began.elapsed() < SECOND * 5);
}

#[test]
fn names_that_no_url_may_have() {
    let client = client();
    let name = "a b/ü?%&+";
    let guard = client.lock(name).acquire().unwrap();
    let held = client.get(name).unwrap().unwrap();
    assert_eq!(held.resources, [name]);
    let listed: Vec<_> = client.locks("a b/ü?%&").map(Result::unwrap).collect();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].id, held.id);
    guard.release().unwrap();
    assert_eq!(client.locks("a b/").count(), 0);
}

#[test]
fn servers_that_are_not_there() {
    let warnings = Arc::new(Mutex::new(String::new()));
    let log = Arc::clone(&warnings);
    let nobody = Client::builder()
        .urls("http://user:secret@127.0.0.1:1,http://127.0.0.1:2")
        .timeout(SECOND / 2)
        .on_warning(move |text| log.lock().unwrap().push_str(text))
        .build()
        .unwrap();
    let result = nobody.lock("a").wait(Duration::ZERO).acquire();
    assert!(matches!(result, Err(Error::Unavailable(_))), "{result:?}");
    assert!(matches!(nobody.get("a"), Err(Error::Unavailable(_))));
    assert!(matches!(
        nobody.locks("a").next(),
        Some(Err(Error::Unavailable(_)))
    ));
    let warnings = warnings.lock().unwrap();
    assert!(warnings.contains("not acquired yet"), "{warnings}");
    assert!(
        !format!("{warnings}{nobody:?}").contains("secret"),
        "{warnings}"
    );
}

/// Responds to requests with a method, each time with the next response of that; what
/// comes after that is not found.
fn scripted(mut responses: Vec<(&'static str, u16, &'static str)>) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut request = [0; 4096];
            let count = socket.read(&mut request).unwrap();
            let is_it = |one: &(&str, u16, &str)| request[..count].starts_with(one.0.as_bytes());
            let place = responses.iter().position(is_it);
            let (_, status, body) = place
                .map_or(("", 404, "{\"code\":\"lock_not_found\"}"), |place| {
                    responses.remove(place)
                });
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status} So\r\nConnection: close\r\nContent-Length: {length}");
            write!(socket, "{head}\r\n\r\n{body}").unwrap();
        }
    });
    Client::new(&url).unwrap()
}

#[test]
fn a_lock_that_is_lost_while_a_renewal_pauses_can_be_released() {
    let grant = r#"{"id":"a","token":"1.x","fencing_token":1,"ttl_ms":9000,"elapsed_ms":0,
        "validity_ms":8900,"renew_after_ms":100}"#;
    let busy = r#"{"code":"no_quorum","retry_after_ms":5000}"#;
    let client = scripted(vec![("POST", 201, grant), ("PUT", 503, busy)]);
    let guard = client.lock("a").acquire().unwrap();
    thread::sleep(SECOND / 2); // the renewal has got the 503, and pauses
    let result = guard.extend(SECOND * 9);
    assert!(matches!(result, Err(Error::Lost(_))), "{result:?}");
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(guard.release().is_err()));
    assert_eq!(told.recv_timeout(SECOND * 10), Ok(true));
}

#[test]
fn the_longest_timeout() {
    let urls = std::env::var("REDLOCKD_URL").expect("REDLOCKD_URL is set");
    let patient = Client::builder().urls(&urls).timeout(Duration::MAX);
    let request = patient.build().unwrap().lock("patient").wait(SECOND);
    request.acquire().unwrap().release().unwrap();
}

#[test]
fn a_warning_that_panics_holds_nothing_up() {
    let client = Client::builder()
        .urls("http://127.0.0.1:1")
        .timeout(SECOND / 2)
        .on_warning(|_| panic!("as eprintln! without a standard error"))
        .build()
        .unwrap();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        // more than there are requests under way at once
        for _ in 0..3 {
            let result = client.lock("a").wait(Duration::ZERO).acquire();
            tell.send(matches!(result, Err(Error::Unavailable(_))))
                .unwrap();
        }
    });
    for _ in 0..3 {
        assert_eq!(told.recv_timeout(SECOND * 10), Ok(true));
    }
}

#[test]
fn threads_share_a_client_and_one_of_them_holds_the_lock() {
    let client = client();
    let inside = AtomicUsize::new(0);
    thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                for _ in 0..5 {
                    let lock = client.lock("shared by threads").wait(SECOND * 20);
                    let guard = lock.acquire().unwrap();
                    assert_eq!(inside.fetch_add(1, SeqCst), 0);
                    thread::sleep(Duration::from_millis(2));
                    inside.fetch_sub(1, SeqCst);
                    guard.release().unwrap();
                }
            });
        }
    });
    client.close_idle();
    assert_eq!(client.get("shared by threads").unwrap(), None);
}

#[test]
fn many_threads_cost_few_requests_and_no_operation_is_lost() {
    let (proxy, client) = Proxy::client();
    proxy.cuts.store(3, SeqCst); // of an acquire, the lock is got again
    let tokens = Mutex::new(HashSet::new());
    thread::scope(|threads| {
        for thread in 0..64 {
            let (client, tokens) = (&client, &tokens);
            threads.spawn(move || {
                for _ in 0..20 {
                    let lock = client.lock(&format!("crowd:{thread}"));
                    let guard = lock.acquire().unwrap();
                    assert!(tokens.lock().unwrap().insert(guard.fencing_token()));
                    guard.release().unwrap();
                }
            });
        }
    });
    assert_eq!(tokens.lock().unwrap().len(), 64 * 20);
    assert_eq!(client.locks("crowd:").count(), 0);
    let (all, batches) = (proxy.requests.load(SeqCst), proxy.batches.load(SeqCst));
    assert_eq!(proxy.cuts.load(SeqCst), 0);
    assert!(
        all < 64 * 20 * 2 / 8,
        "{all} requests, {batches} of them batches"
    );
}

/// Calls `job` in so many threads, and `meanwhile` in this one.
fn at_once<T: Send>(
    count: usize,
    job: impl Fn(usize) -> T + Sync,
    meanwhile: impl FnOnce(),
) -> Vec<T> {
    let job = &job;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for n in 0..count {
            threads.push(scope.spawn(move || job(n)));
        }
        meanwhile();
        let threads = threads.into_iter();
        threads.map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn each_operation_of_a_batch_has_its_own_error() {
    let (proxy, client) = Proxy::client();
    let other = self::client();
    let held = other.lock("own:7").owner("web-3").acquire().unwrap();
    proxy.pause(true);
    let acquire = |n| {
        client
            .lock(&format!("own:{n}"))
            .wait(Duration::ZERO)
            .acquire()
    };
    let results = at_once(20, acquire, || {
        thread::sleep(SECOND / 4);
        proxy.pause(false);
    });
    for (n, result) in results.into_iter().enumerate() {
        match (n, result) {
            (7, Err(Error::Held { holder, .. })) => {
                assert_eq!(holder.owner.as_deref(), Some("web-3"));
            }
            (7, result) => panic!("{result:?}"),
            (_, result) => result.unwrap().release().unwrap(),
        }
    }
    assert!(proxy.batches.load(SeqCst) > 0);
    held.release().unwrap();
}

#[test]
fn what_is_cancelled_while_it_goes_with_others_leaves_no_lock() {
    let (proxy, client) = Proxy::client();
    let (cancel, other) = (Cancel::new(), self::client());
    proxy.pause(true);
    let acquire = |n| client.lock(&format!("left:{n}")).cancel(&cancel).acquire();
    let mut began = Instant::now();
    let results = at_once(40, acquire, || {
        // beyond the half second after which those that are collected go
        thread::sleep(SECOND);
        began = Instant::now();
        cancel.cancel();
    });
    assert!(began.elapsed() < SECOND * 4);
    for result in results {
        assert_eq!(result.unwrap_err(), Error::Cancelled);
    }
    assert!(other.locks("left:").count() > 10, "they are granted");
    proxy.pause(false);
    until_none("left:");
}

#[test]
fn locks_that_have_no_time_are_renewed_together() {
    let (proxy, client) = Proxy::client();
    let acquire = |n| {
        client
            .lock(&format!("soon:{n}"))
            .ttl(SECOND * 8 / 5)
            .acquire()
    };
    let guards = at_once(100, acquire, || ());
    let before = proxy.requests.load(SeqCst);
    thread::sleep(SECOND * 2);
    let requests = proxy.requests.load(SeqCst) - before;
    assert!(
        (3..150).contains(&requests),
        "{requests} requests for 300 extends or more"
    );
    for guard in guards {
        guard.unwrap().check().unwrap();
    }
}

// ---- async

fn in_tokio<T>(future: impl std::future::Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_time().build();
    runtime.unwrap().block_on(future)
}

fn until_none(prefix: &str) {
    let other = client();
    let end = Instant::now() + SECOND * 10;
    while other.locks(prefix).count() > 0 && Instant::now() < end {
        thread::sleep(SECOND / 50);
    }
    assert_eq!(other.locks(prefix).count(), 0);
}

#[test]
fn futures_that_are_dropped_leave_no_lock() {
    let (proxy, client) = Proxy::client();
    let other = self::client();
    proxy.pause(true); // the server grants, and nobody gets to know
    in_tokio(async {
        let mut tasks = Vec::new();
        for n in 0..64_u64 {
            let client = client.clone();
            tasks.push(tokio::spawn(async move {
                let limit = Duration::from_millis(20 * n); // some are collected, some sent
                let lock = client.lock(&format!("gone:{n}"));
                let result = tokio::time::timeout(limit, lock.acquire_async()).await;
                assert!(result.is_err(), "{result:?}");
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert!(other.locks("gone:").count() > 10, "they are granted");
    proxy.pause(false);
    until_none("gone:");
    // at any moment, while the server works
    in_tokio(async {
        for n in 0..100 {
            let (one, two) = (client.lock("gone:a"), client.lock("gone:b"));
            tokio::select! {
                biased;
                () = tokio::time::sleep(Duration::from_micros(100 * n)) => {}
                _ = async { tokio::join!(one.acquire_async(), two.acquire_async()) } => {}
            }
        }
    });
    until_none("gone:");
    // while it waits for somebody else
    let held = other.lock("gone:held").acquire().unwrap();
    in_tokio(async {
        let lock = client.lock("gone:held");
        let wait = tokio::time::timeout(SECOND / 5, lock.acquire_async());
        assert!(wait.await.is_err());
    });
    let end = Instant::now() + SECOND * 5;
    while other.get("gone:held").unwrap().unwrap().waiters > 0 {
        assert!(Instant::now() < end, "it still waits");
        thread::sleep(SECOND / 50);
    }
    held.release().unwrap();
    until_none("gone:");
}

#[test]
fn many_tasks_cost_few_requests_and_no_operation_is_lost() {
    let (proxy, client) = Proxy::client();
    proxy.cuts.store(3, SeqCst);
    let tokens = Arc::new(Mutex::new(HashSet::new()));
    in_tokio(async {
        let mut tasks = Vec::new();
        for task in 0..64 {
            let (client, tokens) = (client.clone(), Arc::clone(&tokens));
            tasks.push(tokio::spawn(async move {
                for _ in 0..20 {
                    let lock = client.lock(&format!("tasks:{task}"));
                    let guard = lock.acquire_async().await.unwrap();
                    assert!(tokens.lock().unwrap().insert(guard.fencing_token()));
                    guard.release_async().await.unwrap();
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(tokens.lock().unwrap().len(), 64 * 20);
    assert_eq!(client.locks("tasks:").count(), 0);
    let (all, batches) = (proxy.requests.load(SeqCst), proxy.batches.load(SeqCst));
    assert_eq!(proxy.cuts.load(SeqCst), 0);
    assert!(
        all < 64 * 20 * 2 / 8,
        "{all} requests, {batches} of them batches"
    );
}

#[test]
fn tasks_wait_for_each_other() {
    let (client, inside) = (client(), Arc::new(AtomicUsize::new(0)));
    in_tokio(async {
        let mut tasks = Vec::new();
        for _ in 0..64 {
            let (client, inside) = (client.clone(), Arc::clone(&inside));
            tasks.push(tokio::spawn(async move {
                let guard = client.lock("one by one").acquire_async().await.unwrap();
                assert_eq!(inside.fetch_add(1, SeqCst), 0);
                tokio::time::sleep(SECOND / 500).await;
                inside.fetch_sub(1, SeqCst);
                guard.release_async().await.unwrap();
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn a_task_gets_to_know_that_its_lock_is_lost() {
    let (client, other) = (client(), client());
    in_tokio(async {
        let lock = client.lock("async:lost").ttl(SECOND);
        let guard = lock.acquire_async().await.unwrap();
        let early = tokio::time::timeout(SECOND / 10, guard.lost());
        assert!(early.await.is_err());
        let held = client.get_async("async:lost").await.unwrap().unwrap();
        let token = held.fencing_token.unwrap();
        assert_eq!(token, guard.fencing_token());
        assert!(other.force_release(&held.id, token).unwrap());
        let loss = tokio::select! {
            loss = guard.lost() => loss,
            () = tokio::time::sleep(SECOND * 5) => panic!("nobody says so"),
        };
        assert!(loss.to_string().contains("the lock ended"), "{loss}");
        assert_eq!(guard.check(), Err(loss.clone()));
        assert_eq!(guard.lost().await, loss);
        assert_eq!(guard.release_async().await, Err(loss));
    });
}

#[test]
fn a_guard_of_a_task() {
    let (client, other) = (client(), client());
    in_tokio(async {
        let lock = client.lock("async:guard").ttl(SECOND);
        let guard = lock.acquire_async().await.unwrap();
        assert!(client
            .lock("async:guard")
            .try_acquire_async()
            .await
            .unwrap()
            .is_none());
        tokio::time::sleep(SECOND * 3 / 2).await; // beyond its TTL
        guard.check().unwrap();
        guard.extend_async(SECOND * 20).await.unwrap();
        assert!(guard.remaining() > SECOND * 15);
        guard.downgrade_async().await.unwrap();
        let reader = other.lock("async:guard").shared().try_acquire().unwrap();
        let reader = reader.unwrap();
        reader.release().unwrap();
        drop(guard);
    });
    until_free("async:guard", SECOND * 5);
    in_tokio(async {
        let guard = client.lock("async:guard").acquire_async().await.unwrap();
        // the release that was begun goes on, though nobody waits for it
        let _ = tokio::time::timeout(Duration::ZERO, guard.release_async()).await;
    });
    until_free("async:guard", SECOND * 5);
    in_tokio(async {
        let mut watch = client.watch("async:guard");
        assert_eq!(watch.next_async().await.unwrap().unwrap(), None);
        let dropped = tokio::time::timeout(SECOND / 10, watch.next_async());
        assert!(dropped.await.is_err());
        let guard = client.lock("async:guard").owner("me").acquire_async().await;
        let holder = watch.next_async().await.unwrap().unwrap().unwrap();
        assert_eq!(holder.owner.as_deref(), Some("me"));
        guard.unwrap().release_async().await.unwrap();
    });
}

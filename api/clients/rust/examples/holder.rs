// SPDX-License-Identifier: MIT
//! Works while it holds a lock, and says when it did:
//!
//! ```text
//! holder RESOURCE TTL_MS              until standard input ends; then it releases
//! holder RESOURCE TTL_MS cancel MS    gives up the acquire after so many ms
//! ```
//!
//! Each line has a moment on `CLOCK_MONOTONIC`, in ns. "step": a step that `check`
//! allowed; "ctx": one by work that looks at `remaining` and waits for `on_loss`.

use std::env;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use redlockd_client::{Cancel, Client, Guard};

fn moment() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the result.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    assert_eq!(result, 0);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn say(what: &str, at: i64, more: &str) {
    let line = format!("{what} {at} {more}\n");
    // whoever reads it may have gone
    let _ = io::stdout().lock().write_all(line.as_bytes());
}

fn works(what: &str, may: impl Fn() -> bool) {
    loop {
        // before the question: however long the process is stopped in between, a late
        // moment is not reported
        let at = moment();
        if !may() {
            return;
        }
        say(what, at, "");
        thread::sleep(Duration::from_millis(2));
    }
}

fn work(guard: &Guard, is_lost: &AtomicBool) {
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    thread::spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        ends.store(true, SeqCst);
    });
    thread::scope(|threads| {
        threads.spawn(|| works("step", || !is_over.load(SeqCst) && guard.check().is_ok()));
        threads.spawn(|| {
            works("ctx", || {
                !is_over.load(SeqCst) && !is_lost.load(SeqCst) && !guard.remaining().is_zero()
            });
        });
    });
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |place: usize| Duration::from_millis(arguments[place].parse().expect("ms"));
    let client = Client::builder().timeout(Duration::from_secs(1));
    let client = client.build().expect("the environment is right");
    let is_lost = Arc::new(AtomicBool::new(false));
    let sees = Arc::clone(&is_lost);
    let cancel = Cancel::new();
    if arguments.len() > 3 {
        let (cancel, after) = (cancel.clone(), number(3));
        thread::spawn(move || {
            thread::sleep(after);
            cancel.cancel();
        });
    }
    let request = client
        .lock(&arguments[0])
        .ttl(number(1))
        .owner("holder")
        .cancel(&cancel)
        .on_loss(move |_| sees.store(true, SeqCst));
    let guard = match request.acquire() {
        Ok(guard) => guard,
        Err(error) => return say("not", moment(), &error.to_string()),
    };
    say("held", moment(), &guard.fencing_token().to_string());
    work(&guard, &is_lost);
    match guard.check() {
        Ok(()) => say("lost", moment(), "false"),
        Err(error) => say("lost", moment(), &format!("true {error}")),
    }
    match guard.release() {
        Ok(()) => say("released", moment(), "<nil>"),
        Err(error) => say("released", moment(), &error.to_string()),
    }
}

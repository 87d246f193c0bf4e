// SPDX-License-Identifier: MIT
//! rslock, measured as ../load.c measures redlockd: cycles of acquire and
//! release by clients that share one manager, as its documentation shows.
//!
//!   rslock-bench CLIENTS SECONDS HOST:PORT…
//!
//! All clients are tasks of one thread. With tokio's threads, a cycle takes up to
//! twice the CPU time, and no number of clients does more cycles: the nodes want
//! the same cores.
use std::sync::Arc;

use rslock::LockManager;
use tally::{Span, Tally, TTL};

#[path = "../clients/rust/tally.rs"]
mod tally;

async fn client(manager: Arc<LockManager>, mut tally: Tally) -> Tally {
    while let Some(name) = tally.next_name() {
        let lock = manager.lock(name.as_str(), TTL).await;
        tally.done(match lock {
            Ok(lock) => Ok(lock.release().await),
            Err(error) => Err(error),
        });
    }
    tally
}

async fn run() {
    let (clients, seconds, nodes) = tally::arguments();
    let nodes = nodes.iter().map(|node| format!("redis://{node}"));
    let manager = Arc::new(LockManager::new(nodes.collect()));
    let span = Span::new(seconds);
    let tasks: Vec<_> = (0..clients)
        .map(|number| tokio::spawn(client(manager.clone(), Tally::new(number, span))))
        .collect();
    let mut each = Vec::new();
    for task in tasks {
        each.push(task.await.expect("a client ended"));
    }
    tally::report(each, seconds);
}

fn main() {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(run());
}

// SPDX-License-Identifier: MIT
//! Guards of our crate; threads share one client.
mod tally;

use redlockd_client::{Client, Guard};
use tally::{Span, Tally, TTL};

fn client(client: &Client, mut tally: Tally) -> Tally {
    while let Some(name) = tally.next_name() {
        let lock = client.lock(&name).ttl(TTL).acquire();
        tally.done(lock.and_then(Guard::release));
    }
    tally
}

fn main() {
    let (clients, seconds, urls) = tally::arguments();
    let shared = Client::new(&urls.join(",")).expect("URLs");
    let span = Span::new(seconds);
    let threads: Vec<_> = (0..clients)
        .map(|number| {
            let shared = shared.clone();
            std::thread::spawn(move || client(&shared, Tally::new(number, span)))
        })
        .collect();
    let each = threads
        .into_iter()
        .map(|thread| thread.join().expect("a client ended"));
    tally::report(each.collect(), seconds);
}

// SPDX-License-Identifier: MIT
//! rslock, spoken to as holder.py tells: a line in, a line out.
use std::collections::HashMap;
use std::time::{Duration, Instant};

use rslock::{Lock, LockManager};
use tokio::io::{AsyncBufReadExt, BufReader};

type Said = Result<usize, String>;

struct Adapter {
    manager: LockManager,
    locks: HashMap<String, Lock>,
}

impl Adapter {
    async fn acquire(&mut self, resource: &str, ttl: Duration) -> Said {
        let lock = self.manager.lock(resource, ttl).await;
        self.keep(resource, lock.map_err(|e| format!("{e:?}"))?)
    }

    async fn extend(&mut self, resource: &str, ttl: Duration) -> Said {
        let old = self.locks.get(resource).ok_or("no such lock")?;
        let lock = self.manager.extend(old, ttl).await;
        self.keep(resource, lock.map_err(|e| format!("{e:?}"))?)
    }

    async fn release(&mut self, resource: &str) -> Said {
        let lock = self.locks.remove(resource).ok_or("no such lock")?;
        lock.release().await;
        Ok(0)
    }

    fn keep(&mut self, resource: &str, lock: Lock) -> Said {
        let validity = lock.validity_time;
        self.locks.insert(resource.to_string(), lock);
        Ok(validity)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // the first argument is a timeout that rslock has no option for
    let nodes: Vec<String> = std::env::args()
        .skip(2)
        .map(|address| format!("redis://{address}"))
        .collect();
    let mut adapter = Adapter {
        manager: LockManager::new(nodes),
        locks: HashMap::new(),
    };
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ttl = words.get(2).and_then(|ms| ms.parse().ok()).unwrap_or(0);
        let ttl = Duration::from_millis(ttl);
        let start = Instant::now();
        let said = match words[0] {
            "acquire" => adapter.acquire(words[1], ttl).await,
            "extend" => adapter.extend(words[1], ttl).await,
            _ => adapter.release(words[1]).await,
        };
        let elapsed = start.elapsed().as_millis();
        match said {
            Ok(validity) => println!("yes {validity} {elapsed} none"),
            Err(why) => println!("no {elapsed} {why}"),
        }
    }
}

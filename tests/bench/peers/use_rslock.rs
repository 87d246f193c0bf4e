//! rslock, measured as ../load.c measures redlockd: cycles of acquire and
//! release by clients that share one manager, as its documentation shows.
//!
//!   rslock-bench CLIENTS SECONDS HOST:PORT…
//!
//! All clients are tasks of one thread. With tokio's threads, a cycle takes up to
//! twice the CPU time, and no number of clients does more cycles: the nodes want
//! the same cores.
use std::sync::Arc;
use std::time::{Duration, Instant};

use rslock::LockManager;

const TTL: Duration = Duration::from_secs(30);
const WARM_UP: Duration = Duration::from_millis(500);

/// Cycles that end from `begin` to `end` count.
#[derive(Clone, Copy)]
struct Span {
    begin: Instant,
    end: Instant,
}

#[derive(Default)]
struct Tally {
    us: Vec<u32>,
    cycles: u64,
    failures: u64,
}

impl Tally {
    fn merge(&mut self, other: Tally) {
        self.us.extend(other.us);
        self.cycles += other.cycles;
        self.failures += other.failures;
    }

    /// Sorted before.
    fn percentile(&self, percent: usize) -> u32 {
        let rank = self.us.len() * percent / 100;
        self.us.get(rank).copied().unwrap_or(0)
    }

    /// As sample_report in ../../../sample.c.
    fn report(mut self, seconds: f64) {
        self.us.sort_unstable();
        println!(
            "cycles_per_s {:.0} cycles {} failures {} p50_us {} p99_us {} client_cpu_us {}",
            self.us.len() as f64 / seconds,
            self.cycles,
            self.failures,
            self.percentile(50),
            self.percentile(99),
            cpu_us()
        );
    }
}

fn cpu_us() -> i64 {
    let mut used = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // it fills all of what it is given
    let used = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, used.as_mut_ptr()), 0);
        used.assume_init()
    };
    [used.ru_utime, used.ru_stime]
        .iter()
        .map(|time| time.tv_sec * 1_000_000 + time.tv_usec)
        .sum()
}

async fn client(manager: Arc<LockManager>, number: usize, span: Span) -> Tally {
    let mut tally = Tally::default();
    for round in 0u64.. {
        let start = Instant::now();
        if start >= span.end {
            break;
        }
        let resource = format!("bench:{:x}:{number}:{round}", std::process::id());
        let granted = manager.lock(resource.as_str(), TTL).await;
        tally.cycles += 1;
        match granted {
            Ok(lock) => lock.release().await,
            Err(error) => {
                eprintln!("rslock: {error}");
                tally.failures += 1;
                continue;
            }
        }
        let now = Instant::now();
        if now >= span.begin && now < span.end {
            tally.us.push((now - start).as_micros() as u32);
        }
    }
    tally
}

async fn run(clients: usize, seconds: f64, nodes: Vec<String>) {
    let manager = Arc::new(LockManager::new(nodes));
    let begin = Instant::now() + WARM_UP;
    let span = Span {
        begin,
        end: begin + Duration::from_secs_f64(seconds),
    };
    let tasks: Vec<_> = (0..clients)
        .map(|number| tokio::spawn(client(manager.clone(), number, span)))
        .collect();
    let mut all = Tally::default();
    for task in tasks {
        all.merge(task.await.expect("a client ended"));
    }
    all.report(seconds);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let clients = arguments.first().and_then(|text| text.parse().ok());
    let seconds = arguments.get(1).and_then(|text| text.parse().ok());
    let (Some(clients), Some(seconds), true) = (clients, seconds, arguments.len() > 2) else {
        eprintln!("usage: rslock-bench CLIENTS SECONDS HOST:PORT…");
        std::process::exit(2);
    };
    let nodes = arguments[2..]
        .iter()
        .map(|node| format!("redis://{node}"))
        .collect();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(run(clients, seconds, nodes));
}

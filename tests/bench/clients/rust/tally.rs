// SPDX-License-Identifier: MIT
//! What the programs that do cycles of acquire and release share: they are counted
//! as ../../load.c does. Each is called as
//!
//!   PROGRAM CLIENTS SECONDS WHERE…
use std::fmt::Display;
use std::time::{Duration, Instant};

pub const TTL: Duration = Duration::from_secs(30);
const WARM_UP: Duration = Duration::from_millis(500);

/// The number of clients, the seconds, and where.
pub fn arguments() -> (usize, f64, Vec<String>) {
    let mut arguments = std::env::args().skip(1);
    let clients = arguments.next().and_then(|text| text.parse().ok());
    let seconds = arguments.next().and_then(|text| text.parse().ok());
    match (clients, seconds, arguments.collect::<Vec<_>>()) {
        (Some(clients), Some(seconds), places) if !places.is_empty() => (clients, seconds, places),
        _ => {
            eprintln!("usage: PROGRAM CLIENTS SECONDS WHERE…");
            std::process::exit(2);
        }
    }
}

/// Cycles that end from `begin` to `end` count.
#[derive(Clone, Copy)]
pub struct Span {
    begin: Instant,
    end: Instant,
}

impl Span {
    pub fn new(seconds: f64) -> Span {
        let begin = Instant::now() + WARM_UP;
        Span {
            begin,
            end: begin + Duration::from_secs_f64(seconds),
        }
    }
}

/// Of one client.
pub struct Tally {
    number: usize,
    span: Span,
    start: Instant,
    us: Vec<u32>,
    cycles: u64,
    failures: u64,
}

impl Tally {
    pub fn new(number: usize, span: Span) -> Tally {
        Tally {
            number,
            span,
            start: Instant::now(),
            us: Vec::new(),
            cycles: 0,
            failures: 0,
        }
    }

    /// Begins a cycle: the name of its lock. None: the time is up.
    pub fn next_name(&mut self) -> Option<String> {
        self.start = Instant::now();
        if self.start >= self.span.end {
            return None;
        }
        self.cycles += 1;
        let (process, client) = (std::process::id(), self.number);
        Some(format!("bench:{process:x}:{client}:{}", self.cycles))
    }

    /// What came of the cycle.
    pub fn done(&mut self, result: Result<(), impl Display>) {
        if let Err(error) = result {
            eprintln!("{error}");
            self.failures += 1;
            return;
        }
        let now = Instant::now();
        if now >= self.span.begin && now < self.span.end {
            self.us.push((now - self.start).as_micros() as u32);
        }
    }
}

/// Prints what came of all clients, as sample_report in ../../../sample.c.
pub fn report(each: Vec<Tally>, seconds: f64) {
    let sum = |of: fn(&Tally) -> u64| each.iter().map(of).sum::<u64>();
    let (cycles, failures) = (sum(|one| one.cycles), sum(|one| one.failures));
    let mut us: Vec<u32> = each.into_iter().flat_map(|one| one.us).collect();
    us.sort_unstable();
    let percentile = |percent| us.get(us.len() * percent / 100).copied().unwrap_or(0);
    println!(
        "cycles_per_s {:.0} cycles {cycles} failures {failures} p50_us {} p99_us {} \
         client_cpu_us {}",
        us.len() as f64 / seconds,
        percentile(50),
        percentile(99),
        cpu_us()
    );
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

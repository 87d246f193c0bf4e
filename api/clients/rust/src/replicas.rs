// SPDX-License-Identifier: MIT
//! The servers, and which one to ask.

use std::sync::Mutex;

use crate::clock::{between_ms, now_ms};
use crate::sync::locked;

const AVOID_FIRST_MS: f64 = 1000.0;
const AVOID_LAST_MS: f64 = 60_000.0;

#[derive(Clone, Default)]
struct Mark {
    failures: i32,
    failed_at: f64,
    until_ms: f64,
    is_avoided: bool,
    is_probed: bool,
}

/// Threads share it.
pub(crate) struct Replicas {
    /// As they are shown: without a user and a password.
    pub names: Vec<String>,
    marks: Mutex<Vec<Mark>>,
}

impl Replicas {
    pub fn new(names: Vec<String>) -> Self {
        let marks = Mutex::new(vec![Mark::default(); names.len()]);
        Replicas { names, marks }
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// The first that is not avoided; if all are, the one that failed first. Waiting
    /// clients are served in order only if they ask the same server. And those to
    /// probe now: the end of a probe is reported to `probed()`.
    pub fn choose(&self) -> (usize, Vec<usize>) {
        let mut marks = locked(&self.marks);
        let now = now_ms();
        let mut due = Vec::new();
        let mut free = None;
        let is_one_of_several = marks.len() > 1;
        for (number, mark) in marks.iter_mut().enumerate() {
            if !mark.is_avoided {
                free = free.or(Some(number));
            } else if now >= mark.until_ms && is_one_of_several && !mark.is_probed {
                mark.is_probed = true;
                due.push(number);
            }
        }
        let first = (0..marks.len())
            .min_by(|&a, &b| marks[a].failed_at.total_cmp(&marks[b].failed_at))
            .unwrap_or(0);
        (free.unwrap_or(first), due)
    }

    /// It failed, or a response is overdue.
    pub fn avoid(&self, number: usize) {
        let mark = &mut locked(&self.marks)[number];
        let now = now_ms();
        mark.failed_at = now;
        if !mark.is_avoided || now >= mark.until_ms {
            let avoid_ms = (AVOID_FIRST_MS * 2_f64.powi(mark.failures)).min(AVOID_LAST_MS);
            // random, so that clients do not probe together
            mark.until_ms = now + between_ms(avoid_ms * 0.75, avoid_ms);
            mark.failures = (mark.failures + 1).min(10);
        }
        mark.is_avoided = true;
    }

    /// It answered a request, in time.
    pub fn works(&self, number: usize) {
        locked(&self.marks)[number] = Mark::default();
    }

    pub fn probed(&self, number: usize, is_back: bool) {
        {
            let mark = &mut locked(&self.marks)[number];
            if !mark.is_probed {
                return; // a request has been answered meanwhile
            }
            mark.is_probed = false;
            if is_back {
                mark.is_avoided = false; // if it fails again, for longer
            }
        }
        if !is_back {
            self.avoid(number);
        }
    }
}

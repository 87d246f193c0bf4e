// SPDX-License-Identifier: MIT
//! The clock by which validity is measured, and random numbers.

#[cfg(test)]
thread_local! {
    /// For tests: the time.
    pub(crate) static FAKE: std::cell::Cell<Option<f64>> = std::cell::Cell::new(None);
}

/// Timers stop while the machine sleeps: whoever waits for a moment looks at the
/// clock again after this time at most.
pub(crate) const LONGEST_SLEEP_MS: f64 = 1000.0;

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// In milliseconds since an arbitrary moment. It never steps back, and on Linux it
/// runs on while the machine sleeps, as the TTLs on the nodes do.
pub(crate) fn now_ms() -> f64 {
    #[cfg(test)]
    if let Some(now) = FAKE.with(std::cell::Cell::get) {
        return now;
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the result.
    let result = unsafe { libc::clock_gettime(CLOCK, &mut time) };
    assert_eq!(result, 0, "the clock can be read");
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// A random time.
pub(crate) fn between_ms(least: f64, most: f64) -> f64 {
    let mut bytes = [0; 4];
    random(&mut bytes);
    least + (most - least) * f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX)
}

/// Random bytes that nobody can guess.
pub(crate) fn random(bytes: &mut [u8]) {
    openssl::rand::rand_bytes(bytes).expect("there are random numbers");
}

//! Two threads that deposit at once: relent's default budget beside tower's, and beside the least that a shared count costs.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use relent_core::{BudgetConfig, Lock, Locks};
use tower::retry::budget::{Budget as _, TpsBudget};

const THREADS: usize = 2;
const DEPOSITS: u32 = 2_000_000;
const ROUNDS: usize = 9;

/// A counter with its cache lines to itself.
#[derive(Default)]
#[repr(align(128))]
struct Padded(AtomicU64);

/// The lock that relent's budget is lent.
#[derive(Debug)]
struct Guarded<T>(Mutex<T>);

impl<T: Send> Lock<T> for Guarded<T> {
    fn new(value: T) -> Self {
        Guarded(Mutex::new(value))
    }

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.lock().expect("no panic under it"))
    }

    fn try_with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.try_lock().ok().map(|mut value| work(&mut value))
    }
}

struct Mutexes;

impl Locks for Mutexes {
    type Of<T: std::fmt::Debug + Send + 'static> = Guarded<T>;
}

/// Prints nanoseconds per deposit and thread, the best of some rounds taken in turn, and their ratios to the first line.
pub fn print() {
    let counters: Arc<[Padded; THREADS]> = Arc::default();
    let shared = Arc::new(Padded::default());
    let relent = BudgetConfig::default().build::<Mutexes>(3, relent_core::Instant::ZERO);
    let tower = Arc::new(TpsBudget::default());
    let subjects: [(&str, Box<dyn Fn() -> Duration>); 4] = [
        ("padded counter, one per thread", {
            Box::new(move || {
                round(|thread| {
                    let counters = Arc::clone(&counters);
                    move || _ = black_box(&counters[thread]).0.fetch_add(1, Ordering::Relaxed)
                })
            })
        }),
        ("padded counter, shared", {
            Box::new(move || {
                round(|_| {
                    let shared = Arc::clone(&shared);
                    move || _ = black_box(&shared).0.fetch_add(1, Ordering::Relaxed)
                })
            })
        }),
        ("relent ratio deposit", {
            Box::new(move || {
                round(|_| {
                    let budget = Arc::clone(&relent);
                    move || black_box(&budget).on_success(1, None)
                })
            })
        }),
        ("tower TpsBudget deposit", {
            Box::new(move || {
                round(|_| {
                    let budget = Arc::clone(&tower);
                    move || black_box(&budget).deposit()
                })
            })
        }),
    ];
    let mut best = [f64::MAX; 4];
    for _ in 0..ROUNDS {
        for (best, (_, run)) in best.iter_mut().zip(&subjects) {
            *best = best.min(run().as_secs_f64() * 1e9 / f64::from(DEPOSITS));
        }
    }
    println!("{:<32} {:>8} {:>12} {:>12} {:>10}", "2 threads", "ns", "per-thread", "shared", "tower");
    for ((name, _), ns) in subjects.iter().zip(best) {
        let times = |of: usize| ns / best[of];
        println!("{name:<32} {ns:>8.2} {:>11.2}x {:>11.2}x {:>9.2}x", times(0), times(1), times(3));
    }
}

/// Every thread does its part at once; the time of the slowest.
fn round<W: FnMut() + Send + 'static>(mut work: impl FnMut(usize) -> W) -> Duration {
    let start = Arc::new(Barrier::new(THREADS));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (mut work, start) = (work(thread), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                let began = Instant::now();
                for _ in 0..DEPOSITS {
                    work();
                }
                began.elapsed()
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().expect("it does not panic")).max().unwrap_or_default()
}

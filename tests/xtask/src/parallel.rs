// SPDX-License-Identifier: GPL-2.0-or-later

//! Runs work on as many threads as there are CPUs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The results of `work` for the numbers below `count`, in order. Panics are propagated.
pub fn map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, T)>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    let result = work(index);
                    results.lock().unwrap_or_else(|error| error.into_inner()).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(|error| error.into_inner());
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A job, run once.
pub type Job<'a> = Box<dyn FnOnce() -> anyhow::Result<()> + Send + 'a>;

/// Runs the jobs of each queue in order, on as many threads as there are CPUs per queue. All are run, even if one
/// fails; returns the first error.
pub fn queues(queues: Vec<Vec<Job>>) -> anyhow::Result<()> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let failed: Mutex<Option<anyhow::Error>> = Mutex::default();
    std::thread::scope(|scope| {
        for queue in queues {
            let queue = std::sync::Arc::new(Mutex::new(queue.into_iter()));
            for _ in 0..threads {
                let (queue, failed) = (std::sync::Arc::clone(&queue), &failed);
                scope.spawn(move || {
                    loop {
                        let job = queue.lock().unwrap_or_else(|error| error.into_inner()).next();
                        let Some(job) = job else { return };
                        if let Err(error) = job() {
                            failed.lock().unwrap_or_else(|error| error.into_inner()).get_or_insert(error);
                        }
                    }
                });
            }
        }
    });
    failed.into_inner().unwrap_or_else(|error| error.into_inner()).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn all_jobs_are_done_also_when_one_fails() {
        let done = AtomicUsize::new(0);
        let job = |fails: bool| -> super::Job {
            let done = &done;
            Box::new(move || {
                done.fetch_add(1, Ordering::Relaxed);
                anyhow::ensure!(!fails, "one");
                Ok(())
            })
        };
        let result = super::queues(vec![vec![job(true), job(false)], (0..20).map(|_| job(false)).collect()]);
        assert_eq!(result.expect_err("one failed").to_string(), "one");
        assert_eq!(done.load(Ordering::Relaxed), 22);
    }

    #[test]
    fn all_are_there_in_their_order() {
        assert_eq!(super::map(100, |number| number * 2), (0..100).map(|number| number * 2).collect::<Vec<_>>());
        assert!(super::map(0, |number| number).is_empty());
    }
}

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
                    results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A job, run once.
pub type Job<'a> = Box<dyn FnOnce() -> anyhow::Result<()> + Send + 'a>;

/// Runs the jobs of each queue in order, on as many threads as there are CPUs per queue; when a queue is empty, its threads
/// take jobs of those after it. All are run, even if one fails; returns the first error.
pub fn queues(queues: Vec<Vec<Job>>) -> anyhow::Result<()> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let failed: Mutex<Option<anyhow::Error>> = Mutex::default();
    let queues: Vec<_> = queues.into_iter().map(|queue| Mutex::new(queue.into_iter())).collect();
    std::thread::scope(|scope| {
        for first in 0..queues.len() {
            for _ in 0..threads {
                let (queues, failed) = (&queues, &failed);
                scope.spawn(move || {
                    let next = || {
                        let mut left = queues.iter().skip(first);
                        left.find_map(|queue| queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next())
                    };
                    loop {
                        let Some(job) = next() else { return };
                        if let Err(error) = job() {
                            failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
                        }
                    }
                });
            }
        }
    });
    failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).map_or(Ok(()), Err)
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
    fn threads_of_an_empty_queue_help_with_the_next() {
        let count = 2 * std::thread::available_parallelism().map_or(2, usize::from);
        let began = AtomicUsize::new(0);
        let job = || -> super::Job {
            let began = &began;
            Box::new(move || {
                began.fetch_add(1, Ordering::SeqCst);
                let since = std::time::Instant::now();
                while began.load(Ordering::SeqCst) < count {
                    anyhow::ensure!(since.elapsed().as_secs() < 20, "the others have not begun");
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                Ok(())
            })
        };
        super::queues(vec![Vec::new(), (0..count).map(|_| job()).collect()]).expect("all at once");
    }

    #[test]
    fn all_are_there_in_their_order() {
        assert_eq!(super::map(100, |number| number * 2), (0..100).map(|number| number * 2).collect::<Vec<_>>());
        assert!(super::map(0, |number| number).is_empty());
    }
}

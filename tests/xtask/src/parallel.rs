// SPDX-License-Identifier: GPL-2.0-or-later

//! Runs work on as many threads as there are CPUs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// The results of `work` for the numbers below `count`, in order. Panics are propagated.
pub fn map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, T)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..cpus() {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    let result = work(index);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A job, run once.
pub type Job<'a> = Box<dyn FnOnce() -> anyhow::Result<()> + Send + 'a>;

/// Jobs that are run in their order, on threads of their own.
pub struct Queue<'a> {
    /// How many of them run at the same time, at least 1.
    pub threads: usize,
    /// The first is started first.
    pub jobs: Vec<Job<'a>>,
}

/// The number of CPUs.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// Runs all jobs, even if one fails; returns the first error. When a queue is empty, its threads take jobs of those after it.
pub fn queues(queues: Vec<Queue>) -> anyhow::Result<()> {
    let failed: Mutex<Option<anyhow::Error>> = Mutex::default();
    let threads: Vec<usize> = queues.iter().map(|queue| queue.threads).collect();
    let queues: Vec<_> = queues.into_iter().map(|queue| Mutex::new(queue.jobs.into_iter())).collect();
    std::thread::scope(|scope| {
        for (first, threads) in threads.into_iter().enumerate() {
            for _ in 0..threads {
                let (queues, failed) = (&queues, &failed);
                scope.spawn(move || {
                    let next = || {
                        let mut left = queues.iter().skip(first);
                        left.find_map(|queue| queue.lock().unwrap_or_else(PoisonError::into_inner).next())
                    };
                    loop {
                        let Some(job) = next() else { return };
                        if let Err(error) = job() {
                            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        }
                    }
                });
            }
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Results of jobs that other jobs need, by number. The jobs that set them must be in a queue whose threads do not wait.
pub struct Results<T> {
    set: Mutex<Vec<Option<T>>>,
    changed: Condvar,
}

impl<T: Clone> Results<T> {
    /// For the numbers below `count`.
    pub fn new(count: usize) -> Self {
        Results { set: Mutex::new((0..count).map(|_| None).collect()), changed: Condvar::new() }
    }

    /// Sets the result of a number below the count; others are ignored.
    pub fn set(&self, number: usize, result: T) {
        if let Some(entry) = self.set.lock().unwrap_or_else(PoisonError::into_inner).get_mut(number) {
            *entry = Some(result);
        }
        self.changed.notify_all();
    }

    /// The result of a number below the count, when it is set; `None` at once for others.
    pub fn wait_for(&self, number: usize) -> Option<T> {
        let set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = |set: &mut Vec<Option<T>>| set.get(number).is_some_and(Option::is_none);
        let set = self.changed.wait_while(set, is_open).unwrap_or_else(PoisonError::into_inner);
        set.get(number).cloned().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Queue;

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
        let first = Queue { threads: 1, jobs: vec![job(true), job(false)] };
        let result = super::queues(vec![first, Queue { threads: 2, jobs: (0..20).map(|_| job(false)).collect() }]);
        assert_eq!(result.expect_err("one failed").to_string(), "one");
        assert_eq!(done.load(Ordering::Relaxed), 22);
    }

    #[test]
    fn threads_of_an_empty_queue_help_with_the_next() {
        let count = 5;
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
        let jobs = (0..count).map(|_| job()).collect();
        super::queues(vec![Queue { threads: 3, jobs: Vec::new() }, Queue { threads: 2, jobs }]).expect("all at once");
    }

    #[test]
    fn a_job_waits_for_the_result_of_another() {
        let results = super::Results::new(2);
        let waiting: super::Job = Box::new(|| {
            anyhow::ensure!(results.wait_for(1) == Some("one") && results.wait_for(2).is_none(), "another");
            Ok(())
        });
        let setting: super::Job = Box::new(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            results.set(1, "one");
            results.set(2, "ignored");
            Ok(())
        });
        super::queues(vec![Queue { threads: 1, jobs: vec![waiting] }, Queue { threads: 1, jobs: vec![setting] }])
            .expect("both");
    }

    #[test]
    fn results_are_complete_and_in_order() {
        assert_eq!(super::map(100, |number| number * 2), (0..100).map(|number| number * 2).collect::<Vec<_>>());
        assert!(super::map(0, |number| number).is_empty());
    }
}

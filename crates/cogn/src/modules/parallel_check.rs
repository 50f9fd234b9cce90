//! Parallel processing of many modules: results are delivered in order, and only a window of them is in
//! memory.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Size of the window per thread.
const WINDOW_PER_THREAD: usize = 32;

/// Calls `work` for every item and passes the results to `take` in the order of the items. Stops at the first
/// error of `take`.
pub(crate) fn check_all<T, R, E>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(&T) -> R + Sync,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E>
where
    T: Sync,
    R: Send + Sync,
{
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut items = items.into_iter();
    loop {
        let window: Vec<T> = items.by_ref().take(threads * WINDOW_PER_THREAD).collect();
        match window.as_slice() {
            [] => return Ok(()),
            // One item is not worth starting threads.
            [only] => take(work(only))?,
            window => {
                for result in share(window, threads, &work) {
                    take(result)?;
                }
            }
        }
    }
}

fn share<T: Sync, R: Send + Sync>(window: &[T], threads: usize, work: &(impl Fn(&T) -> R + Sync)) -> Vec<R> {
    let slots: Vec<OnceLock<R>> = window.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let run = || {
        while let Some((item, slot)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            window.get(index).zip(slots.get(index))
        } {
            // Each index is used once, so the slot is empty.
            slot.set(work(item)).ok();
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(window.len()) {
            scope.spawn(run);
        }
        run();
    });
    slots.into_iter().filter_map(OnceLock::into_inner).collect()
}

#[cfg(test)]
mod tests {
    use super::check_all;

    #[test]
    fn returns_results_in_order_and_stops_on_error() {
        let mut seen = Vec::new();
        let result: Result<(), ()> = check_all(
            0..10_000,
            |n| n * 2,
            |n| {
                seen.push(n);
                Ok(())
            },
        );
        assert_eq!(result, Ok(()));
        assert_eq!(seen, (0..10_000).map(|n| n * 2).collect::<Vec<_>>());
        assert_eq!(
            check_all(0..10_000, |n| *n, |n| if n < 500 { Ok(()) } else { Err(n) }),
            Err(500)
        );
    }
}

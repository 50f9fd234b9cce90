//! Many modules at once: the work is shared among threads, the results arrive in order, and only a
//! window of them is ever held.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Modules that each thread may be ahead of the output.
const WINDOW_PER_THREAD: usize = 32;

/// Does `work` on every item and hands the results to `take` in the order of the items. The first error
/// of `take` ends it.
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
            // Starting threads for one module would cost more than the module.
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
            // Each index is drawn once, so the slot is always free.
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
    fn results_arrive_in_order_and_an_error_ends_it() {
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

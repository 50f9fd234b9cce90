//! Threads that compile and apply the schemas of requests. Both are recursive and may take long, so they
//! never run on a worker of the runtime: each piece of work has a thread with a large stack, and few run at
//! a time. The work must be bounded by the admission of the schema; it is not cancelled.

use std::sync::Arc;
use std::thread;

use tokio::sync::{Semaphore, oneshot};

use crate::limits;

#[derive(Clone, Debug)]
pub(crate) struct SchemaThreads(Arc<Semaphore>);

impl SchemaThreads {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(limits::SCHEMA_THREADS_MAX)))
    }

    /// The result of `work`; `None` if it panicked or no thread could be started.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let permit = Arc::clone(&self.0).acquire_owned().await.ok()?;
        let (sender, receiver) = oneshot::channel();
        let thread = thread::Builder::new()
            .name(String::from("schema"))
            .stack_size(limits::SCHEMA_STACK_BYTES)
            .spawn(move || {
                let result = work();
                drop(permit);
                // A caller that has gone away needs no result.
                sender.send(result).ok();
            });
        thread.ok()?;
        receiver.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::SchemaThreads;

    #[tokio::test]
    async fn survives_panic_and_deep_recursion() {
        fn depth(rest: u32) -> u32 {
            let frame = std::hint::black_box([rest; 16]);
            if rest == 0 {
                frame[0]
            } else {
                depth(rest - 1) + std::hint::black_box(frame)[1] / rest
            }
        }
        let threads = SchemaThreads::new();
        for _ in 0..crate::limits::SCHEMA_THREADS_MAX + 1 {
            assert_eq!(threads.run(|| panic!("expected")).await, None::<()>);
        }
        assert_eq!(threads.run(|| depth(50_000)).await, Some(50_000));
    }
}

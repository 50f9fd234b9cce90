//! Threads that compile and apply the schemas of modules and requests. Both are recursive and may take long,
//! so they never run on a worker of the runtime: they run on threads with large stacks, few at a time. The
//! work must be bounded by the admission of the schema; it is not cancelled. A thread without work is kept
//! until the pool is dropped.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use module::Code;
use module::envelope::ErrorBody;
use tokio::sync::{Semaphore, oneshot};

use crate::limits;

/// A handle: clones share the threads.
#[derive(Clone)]
pub struct SchemaThreads(Arc<Pool>);

struct Pool {
    permits: Arc<Semaphore>,
    /// The queues of the threads without work.
    idle: Mutex<Vec<ThreadQueue>>,
}

type ThreadWork = Box<dyn FnOnce() + Send>;

/// Holds at most one job: a thread is in `idle` only when it has none.
type ThreadQueue = mpsc::SyncSender<ThreadWork>;

/// What a panic of the work left, or why no thread could be started.
type Payload = Box<dyn Any + Send>;

impl Default for SchemaThreads {
    fn default() -> Self {
        Self(Arc::new(Pool {
            permits: Arc::new(Semaphore::new(limits::SCHEMA_THREADS_MAX)),
            idle: Mutex::default(),
        }))
    }
}

impl SchemaThreads {
    /// The result of `work`; `Err` if it panicked or no thread could be started.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Payload> {
        let permit = Arc::clone(&self.0.permits).acquire_owned().await;
        let permit = permit.map_err(|error| Box::new(error) as Payload)?;
        let idle = self.0.idle().pop();
        let queue = idle.map_or_else(start, Ok)?;
        let (sender, receiver) = oneshot::channel();
        let (pool, again) = (Arc::downgrade(&self.0), queue.clone());
        let job: ThreadWork = Box::new(move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            // Without a pool the queue is dropped, and the thread ends.
            if let Some(pool) = pool.upgrade() {
                pool.idle().push(again);
            }
            drop(permit);
            // A caller that has gone away needs no result.
            sender.send(result).ok();
        });
        queue
            .send(job)
            .map_err(|error| Box::new(error.to_string()) as Payload)?;
        receiver.await.map_err(|error| Box::new(error) as Payload)?
    }

    /// As [`Self::run`], for a check: one that panics is an error of the server.
    pub async fn check<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Box<ErrorBody>> + Send + 'static,
    ) -> Result<T, Box<ErrorBody>> {
        self.run(work).await.unwrap_or_else(|_| {
            let body = ErrorBody::new(Code::E4000, "the schema could not be applied");
            Err(Box::new(body))
        })
    }
}

impl Pool {
    /// No code panics while holding the lock.
    fn idle(&self) -> MutexGuard<'_, Vec<ThreadQueue>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a thread, which ends when its queue is dropped.
fn start() -> Result<ThreadQueue, Payload> {
    let (queue, jobs) = mpsc::sync_channel::<ThreadWork>(1);
    let thread = thread::Builder::new()
        .name(String::from("schema"))
        .stack_size(limits::SCHEMA_STACK_BYTES)
        .spawn(move || {
            for job in jobs {
                job();
            }
        });
    thread.map(|_| queue).map_err(|error| Box::new(error) as Payload)
}

impl fmt::Debug for SchemaThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SchemaThreads")
    }
}

#[cfg(test)]
mod tests {
    use super::SchemaThreads;
    use crate::limits::SCHEMA_THREADS_MAX;

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
        let threads = SchemaThreads::default();
        for _ in 0..=SCHEMA_THREADS_MAX {
            assert!(threads.run(|| panic!("expected")).await.map(|(): ()| ()).is_err());
        }
        assert_eq!(threads.run(|| depth(50_000)).await.unwrap(), 50_000);
    }

    #[tokio::test]
    async fn reuses_threads_and_has_few() {
        let threads = SchemaThreads::default();
        let one = |_| threads.run(|| std::thread::current().id());
        let first = one(0).await.unwrap();
        assert_eq!(one(1).await.unwrap(), first);
        let many = futures::future::join_all((0..50).map(one)).await;
        let mut ids: Vec<String> = many.into_iter().map(|id| format!("{:?}", id.unwrap())).collect();
        ids.sort();
        ids.dedup();
        assert!(ids.len() <= SCHEMA_THREADS_MAX, "{ids:?}");
    }
}

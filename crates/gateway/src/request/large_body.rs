//! Requests with a large body: counting, parsing, decoding and dropping what they contain takes longer than a
//! worker of the runtime may be occupied. From the end of such a body on, the worker hands its other tasks to
//! another thread before each step, and few such steps are executed at a time.

use std::future::poll_fn;
use std::num::NonZero;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::thread::available_parallelism;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use hyper::body::{Frame, SizeHint};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::block_in_place;

use crate::limits;

/// Whether a large body has arrived.
type Arrived = Arc<AtomicBool>;

/// Handles a request up to the head of its response.
pub(crate) async fn handle<F: Future>(request: Request, handler: impl FnOnce(Request) -> F) -> F::Output {
    let declared = request.body().size_hint().upper().map(usize::try_from);
    let is_small = matches!(declared, Some(Ok(bytes)) if bytes <= limits::BODY_INLINE_BYTES);
    let has_workers =
        || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if is_small || !has_workers() {
        return handler(request).await;
    }
    let arrived = Arrived::default();
    let request = request.map(|body| {
        Body::new(ObservedBody {
            body,
            bytes: 0,
            arrived: arrived.clone(),
        })
    });
    let mut handling = pin!(handler(request));
    loop {
        let slot = match arrived.load(Ordering::Relaxed) {
            // The semaphore is never closed.
            true => steps().acquire().await.ok(),
            false => None,
        };
        let step = poll_fn(|context| {
            Poll::Ready(match slot {
                Some(_) => block_in_place(|| handling.as_mut().poll(context)),
                None => handling.as_mut().poll(context),
            })
        });
        if let Poll::Ready(output) = step.await {
            return output;
        }
        drop(slot);
        woken().await;
    }
}

/// The steps with large bodies that are executed at a time: one processor is left for everything else.
fn steps() -> &'static Semaphore {
    static STEPS: OnceLock<Semaphore> = OnceLock::new();
    STEPS.get_or_init(|| {
        let processors = available_parallelism().map_or(1, NonZero::get);
        Semaphore::new(processors.saturating_sub(1).max(1))
    })
}

/// Waits for the waker that the last step was polled with.
async fn woken() {
    let mut waited = false;
    poll_fn(|_| match std::mem::replace(&mut waited, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

/// A body that ends the current step when all of it has arrived and it is large.
struct ObservedBody {
    body: Body,
    bytes: usize,
    arrived: Arrived,
}

impl HttpBody for ObservedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.arrived.load(Ordering::Relaxed) {
            return Poll::Ready(None);
        }
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
            return Poll::Pending;
        };
        if let Some(Ok(frame)) = &frame {
            self.bytes += frame.data_ref().map_or(0, Bytes::len);
        }
        if frame.is_none() && self.bytes > limits::BODY_INLINE_BYTES {
            self.arrived.store(true, Ordering::Relaxed);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(frame)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use axum::body::{Body, to_bytes};
    use axum::extract::Request;
    use tokio_util::task::TaskTracker;

    use super::handle;
    use crate::limits;

    /// Whether another task of the only worker is executed while a step after this body occupies its thread.
    async fn others_continue(body: Body, wait: Duration) -> bool {
        let (sender, receiver) = mpsc::channel();
        let handler = async move |request: Request| {
            to_bytes(request.into_body(), usize::MAX).await.unwrap();
            TaskTracker::new().spawn(async move { sender.send(()).ok() });
            receiver.recv_timeout(wait).is_ok()
        };
        let handling = TaskTracker::new().spawn(handle(Request::new(body), handler));
        handling.await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_continue_during_a_step_with_a_large_body() {
        let large = vec![b' '; limits::BODY_INLINE_BYTES + 1];
        let pieces = large.chunks(1_000).map(|piece| Ok(piece.to_vec()));
        let pieces: Vec<std::io::Result<Vec<u8>>> = pieces.collect();
        let pieces = Body::from_stream(futures::stream::iter(pieces));
        let long = Duration::from_secs(20);
        assert!(others_continue(Body::from(large), long).await);
        assert!(others_continue(pieces, long).await);
        let small = Body::from(vec![b' '; limits::BODY_INLINE_BYTES]);
        assert!(!others_continue(small, Duration::from_millis(50)).await);
    }
}

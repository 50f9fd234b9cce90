//! The body of a form, with a bound on what the parser takes without a result. Until the first part begins, and
//! until the headers of a part end, the parser keeps all bytes and searches them again after each piece: without
//! the bound both its memory and its time, which grows with the square, would depend on the sender.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::Bytes;
use futures::{Stream, StreamExt};

use crate::limits;

/// Shared by the body and the reader of the form. Both run in one task.
#[derive(Clone, Debug, Default)]
pub(super) struct FormProgress(Arc<Taken>);

#[derive(Debug, Default)]
struct Taken {
    bytes: AtomicUsize,
    /// The parser was given no more; it has yet to look at what it has.
    paused: AtomicBool,
}

impl FormProgress {
    /// The parser returned the headers of a part, or bytes of it.
    pub(super) fn reached(&self) {
        self.0.bytes.store(0, Ordering::Relaxed);
        self.0.paused.store(false, Ordering::Relaxed);
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PartHeadersTooLarge;

impl fmt::Display for PartHeadersTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allowed = limits::PART_HEADER_BYTES_MAX;
        write!(f, "the headers of a part of the form exceed {allowed} bytes")
    }
}

impl std::error::Error for PartHeadersTooLarge {}

/// The pieces of a body.
pub(super) struct FormBody<S> {
    pub(super) pieces: S,
    pub(super) progress: FormProgress,
}

impl<S, E> Stream for FormBody<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::error::Error + Send + Sync + 'static,
{
    type Item = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let body = self.get_mut();
        let taken = &body.progress.0;
        if taken.bytes.load(Ordering::Relaxed) >= limits::PART_HEADER_BYTES_MAX {
            if taken.paused.swap(true, Ordering::Relaxed) {
                return Poll::Ready(Some(Err(Box::new(PartHeadersTooLarge))));
            }
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let piece = body.pieces.poll_next_unpin(context);
        if let Poll::Ready(Some(Ok(bytes))) = &piece {
            taken.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        }
        piece.map(|piece| piece.map(|read| read.map_err(Into::into)))
    }
}

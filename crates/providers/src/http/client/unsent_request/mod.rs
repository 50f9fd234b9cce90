//! Closes the connection of a request that was not sent completely when its call or its response is dropped.
//!
//! hyper sends such a request to its end, and never closes the connection of a server that does not read it.
//! A connection that became idle before its write buffer was empty is neither closed nor reused
//! (<https://github.com/hyperium/hyper/issues/4176>). HTTP/2 connections are not closed: other streams use them.

#[cfg(test)]
mod tests;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::task::AtomicWaker;
use hyper::body::{Body, Frame, SizeHint};
use hyper::http::Extensions;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{CaptureConnection, Connected, Connection, capture_connection};

use crate::http::request_body::BoxedBody;

/// Owned by the call until the response head arrives, then by the response.
#[derive(Debug)]
pub(in crate::http) struct UnsentRequestGuard {
    connection: CaptureConnection,
    body_read: Arc<AtomicBool>,
}

impl UnsentRequestGuard {
    pub(super) fn new(request: &mut hyper::Request<CountedBody>) -> Self {
        Self {
            body_read: request.body().is_read.clone(),
            connection: capture_connection(request),
        }
    }
}

impl Drop for UnsentRequestGuard {
    fn drop(&mut self) {
        let connected = self.connection.connection_metadata();
        let Some(connected) = connected
            .as_ref()
            .filter(|connected| !connected.is_negotiated_h2())
        else {
            return;
        };
        let mut extensions = Extensions::new();
        connected.get_extras(&mut extensions);
        if let Some(state) = extensions.get::<Arc<SendState>>()
            && (!self.body_read.load(Ordering::Acquire) || state.is_unsent())
        {
            state.abort();
        }
    }
}

/// A request body that records when hyper has read all of it.
#[derive(Debug)]
pub(super) struct CountedBody {
    body: BoxedBody,
    remaining_bytes: u64,
    is_read: Arc<AtomicBool>,
}

impl CountedBody {
    pub(super) fn new(body: BoxedBody, size_bytes: u64) -> Self {
        Self {
            body,
            remaining_bytes: size_bytes,
            is_read: Arc::new(AtomicBool::new(size_bytes == 0)),
        }
    }
}

impl Body for CountedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame {
            let read = frame.data_ref().map_or(0, Bytes::len);
            self.remaining_bytes = self.remaining_bytes.saturating_sub(read as u64);
        }
        if self.remaining_bytes == 0 {
            self.is_read.store(true, Ordering::Release);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Shared by a connection and the guard of its request.
#[derive(Debug, Default)]
struct SendState {
    /// Bytes were written after the last flush. hyper flushes when its write buffer is empty.
    unflushed: AtomicBool,
    /// The server sent something before all of a request was written. Never reset, because the guard of that
    /// request closes the connection.
    answered_early: AtomicBool,
    aborted: AtomicBool,
    task: AtomicWaker,
}

impl SendState {
    fn is_unsent(&self) -> bool {
        self.unflushed.load(Ordering::Acquire) || self.answered_early.load(Ordering::Acquire)
    }

    fn abort(&self) {
        self.aborted.store(true, Ordering::Release);
        self.task.wake();
    }

    fn check(&self, context: &mut Context<'_>) -> io::Result<()> {
        self.task.register(context.waker());
        match self.aborted.load(Ordering::Acquire) {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }
}

/// A connection, after its TLS handshake, that a guard can close.
#[derive(Debug)]
pub(in crate::http) struct AbortableStream<S> {
    stream: S,
    state: Arc<SendState>,
}

impl<S> From<S> for AbortableStream<S> {
    fn from(stream: S) -> Self {
        Self {
            stream,
            state: Arc::default(),
        }
    }
}

impl<S: Connection> Connection for AbortableStream<S> {
    fn connected(&self) -> Connected {
        self.stream.connected().extra(self.state.clone())
    }
}

impl<S: Read + Unpin> Read for AbortableStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.state.check(context)?;
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if self.state.unflushed.load(Ordering::Acquire) {
            self.state.answered_early.store(true, Ordering::Release);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: Write + Unpin> Write for AbortableStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.state.check(context)?;
        self.state.unflushed.store(true, Ordering::Release);
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.state.check(context)?;
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.state.unflushed.store(false, Ordering::Release);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.state.check(context)?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.state.check(context)?;
        self.state.unflushed.store(true, Ordering::Release);
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}

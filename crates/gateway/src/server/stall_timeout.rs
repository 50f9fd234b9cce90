//! A connection with timeouts: for a stalled write, and for a client that does not send the first bytes of a
//! request. The run of a closed stream continues as after any disconnect; the client can resume.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Length of the HTTP/2 preface. After this many bytes the limits of the HTTP library apply; every valid
/// request is longer.
const OPENING_BYTES: usize = 24;

#[derive(Debug)]
pub(super) struct StallTimeoutIo<S> {
    stream: S,
    stall: Duration,
    opening: Option<FirstBytes>,
    /// Runs while a write is pending. Created at the first pending write, so that fast clients cost nothing.
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

/// State of a client that has not sent enough bytes.
#[derive(Debug)]
struct FirstBytes {
    timer: Pin<Box<Sleep>>,
    missing: usize,
}

impl<S> StallTimeoutIo<S> {
    pub(super) fn new(stream: S, stall: Duration, opening: Duration) -> Self {
        Self {
            stream,
            stall,
            opening: Some(FirstBytes {
                timer: Box::pin(tokio::time::sleep(opening)),
                missing: OPENING_BYTES,
            }),
            timer: None,
            waiting: false,
        }
    }

    /// Polls the stall timer, starting it for a new wait.
    fn wait<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        let deadline = Instant::now() + self.stall;
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if !self.waiting {
            self.waiting = true;
            timer.as_mut().reset(deadline);
        }
        ready!(timer.as_mut().poll(context));
        let message = "write stalled";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
    }

    fn check_stall<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match outcome {
            Poll::Pending => self.wait(context),
            ready @ Poll::Ready(_) => {
                self.waiting = false;
                ready
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallTimeoutIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        let Some(opening) = &mut self.opening else {
            return outcome;
        };
        opening.missing = opening.missing.saturating_sub(buffer.filled().len() - before);
        if opening.missing == 0 {
            self.opening = None;
            return outcome;
        }
        if outcome.is_pending() {
            ready!(opening.timer.as_mut().poll(context));
            let message = "no request before the timeout";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)));
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallTimeoutIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_stall(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.check_stall(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.check_stall(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.check_stall(context, outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::StallTimeoutIo;

    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn times_out_without_first_bytes() {
        for sent in ["", "P", "PRI * HTTP/2.0"] {
            let (here, mut there) = duplex(64);
            let mut here = StallTimeoutIo::new(here, LONG, Duration::from_millis(20));
            there.write_all(sent.as_bytes()).await.unwrap();
            let error = here.read_to_end(&mut Vec::new()).await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{sent}");
        }
    }

    #[tokio::test]
    async fn times_out_when_write_stalls() {
        let (here, there) = duplex(16);
        let mut here = StallTimeoutIo::new(here, Duration::from_millis(20), LONG);
        let error = here.write_all(&[7; 400]).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        drop(there);
    }

    #[tokio::test]
    async fn writes_without_timeout_to_reading_client() {
        let (here, mut there) = duplex(16);
        let mut here = StallTimeoutIo::new(here, LONG, LONG);
        let mut bytes = Vec::new();
        let writing = async move { here.write_all(&[7; 400]).await };
        let (written, read) = tokio::join!(writing, there.read_to_end(&mut bytes));
        written.unwrap();
        assert_eq!(read.unwrap(), 400);
        assert_eq!(bytes, [7; 400]);
    }
}

//! A connection that gives up on a reader who takes nothing for too long, and on a client that never
//! says which protocol it speaks. The run behind a stream goes on as for anyone who left; the reader can
//! come back for the rest.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// As many bytes as the opening of HTTP/2 has. Whoever has sent them is under the limits of the protocol
/// itself; no request that can be answered is shorter.
const OPENING_BYTES: usize = 24;

#[derive(Debug)]
pub(super) struct StallTimeoutIo<S> {
    stream: S,
    stall: Duration,
    opening: Option<FirstBytes>,
    /// Runs while a write waits. Made at the first wait, so that fast readers cost nothing.
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

/// What is known of a client that has not yet said enough.
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

    /// Starts or goes on with waiting, and ends it when it has lasted too long.
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
        let message = "the reader took nothing for too long";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
    }

    fn judge<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
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
            let message = "the client said nothing for too long";
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
        self.judge(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(context, outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::StallTimeoutIo;

    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn a_client_who_says_too_little_is_given_up() {
        for said in ["", "P", "PRI * HTTP/2.0"] {
            let (here, mut there) = duplex(64);
            let mut here = StallTimeoutIo::new(here, LONG, Duration::from_millis(20));
            there.write_all(said.as_bytes()).await.unwrap();
            let error = here.read_to_end(&mut Vec::new()).await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{said}");
        }
    }

    #[tokio::test]
    async fn a_reader_who_takes_nothing_is_given_up() {
        let (here, there) = duplex(16);
        let mut here = StallTimeoutIo::new(here, Duration::from_millis(20), LONG);
        let error = here.write_all(&[7; 400]).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        drop(there);
    }

    #[tokio::test]
    async fn a_reader_who_takes_everything_is_not() {
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

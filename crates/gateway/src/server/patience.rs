//! A connection that gives up on a reader who takes nothing for too long. The run behind the stream
//! goes on as for anyone who left; the reader can come back for the rest.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

#[derive(Debug)]
pub(super) struct Patience<S> {
    stream: S,
    stall: Duration,
    /// Runs while a write waits. Made at the first wait, so that fast readers cost nothing.
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl<S> Patience<S> {
    pub(super) fn new(stream: S, stall: Duration) -> Self {
        Self {
            stream,
            stall,
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
            ready => {
                self.waiting = false;
                ready
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patience<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patience<S> {
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

    use super::Patience;

    #[tokio::test]
    async fn a_reader_who_takes_nothing_is_given_up() {
        let (here, there) = duplex(16);
        let mut here = Patience::new(here, Duration::from_millis(20));
        let error = here.write_all(&[7; 400]).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        drop(there);
    }

    #[tokio::test]
    async fn a_reader_who_takes_everything_is_not() {
        let (here, mut there) = duplex(16);
        let mut here = Patience::new(here, Duration::from_secs(600));
        let writing = tokio::spawn(async move { here.write_all(&[7; 400]).await });
        let mut bytes = Vec::new();
        there.read_to_end(&mut bytes).await.unwrap();
        writing.await.unwrap().unwrap();
        assert_eq!(bytes, [7; 400]);
    }
}

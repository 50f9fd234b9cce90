//! A connection that yields once before each write while other connections are ready, so that several writes
//! are executed in sequence with warm kernel code. The condition is passed in.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[derive(Debug)]
pub(super) struct Aside<S, C> {
    stream: S,
    is_crowded: C,
    /// The next write has already yielded.
    waited: bool,
}

impl<S, C: Fn() -> bool> Aside<S, C> {
    pub(super) fn new(stream: S, is_crowded: C) -> Self {
        Self {
            stream,
            is_crowded,
            waited: false,
        }
    }

    /// Whether to yield: once for each write, and only if there are other connections.
    fn steps_aside(&mut self, context: &mut Context<'_>) -> bool {
        if !std::mem::take(&mut self.waited) && (self.is_crowded)() {
            // Polled once: it wakes this task behind all ready ones and is not polled again.
            self.waited = pin!(tokio::task::yield_now()).poll(context).is_pending();
        }
        self.waited
    }
}

impl<S: AsyncRead + Unpin, C: Unpin> AsyncRead for Aside<S, C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin, C: Fn() -> bool + Unpin> AsyncWrite for Aside<S, C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.steps_aside(context) {
            true => Poll::Pending,
            false => Pin::new(&mut self.stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.steps_aside(context) {
            true => Poll::Pending,
            false => Pin::new(&mut self.stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::Aside;

    /// The order of steps of two tasks that are ready at the same time.
    async fn order(crowded: bool) -> Vec<&'static str> {
        let seen = RefCell::new(Vec::new());
        let one = async |made, written| {
            let (here, mut there) = duplex(64);
            let mut here = Aside::new(here, || crowded);
            for _ in 0..2 {
                seen.borrow_mut().push(made);
                here.write_all(b"word").await.unwrap();
                seen.borrow_mut().push(written);
            }
            drop(here);
            let mut read = String::new();
            there.read_to_string(&mut read).await.unwrap();
            assert_eq!(read, "wordword");
        };
        tokio::join!(biased; one("make 1", "write 1"), one("make 2", "write 2"));
        seen.into_inner()
    }

    #[tokio::test]
    async fn yields_before_write_when_contended() {
        let (make, write) = (["make 1", "make 2"], ["write 1", "write 2"]);
        let alone = [
            make[0], write[0], make[0], write[0], make[1], write[1], make[1], write[1],
        ];
        assert_eq!(order(false).await, alone);
        let together = [
            make[0], make[1], write[0], make[0], write[1], make[1], write[0], write[1],
        ];
        assert_eq!(order(true).await, together);
    }
}

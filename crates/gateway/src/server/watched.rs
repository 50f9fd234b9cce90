//! A connection whose client is noticed to leave while nobody reads from it, as while an answer goes out. The library
//! that speaks HTTP would notice too, by reading ahead, and hold 8 KiB for each answer to do so. Here nothing is taken
//! from the connection and nothing is held.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

#[derive(Debug)]
pub(super) struct Watched {
    stream: TcpStream,
    /// Somebody waits for bytes, and learns by that when there will be none.
    awaited: bool,
}

impl Watched {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            awaited: false,
        }
    }

    /// Whether nothing will come any more. Whoever asks is woken when that changes.
    fn has_left(&self, context: &mut Context<'_>) -> bool {
        let mut byte = [0];
        match self.stream.poll_peek(context, &mut ReadBuf::new(&mut byte)) {
            Poll::Ready(Ok(count)) => count == 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.awaited = outcome.is_pending();
        outcome
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Comes whenever all is written that there is, so that this is where a client's leaving is looked for.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.awaited && self.has_left(context) {
            let message = "the client has left";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, message)));
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::ErrorKind;
    use std::pin::Pin;
    use std::task::Poll;

    use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::Watched;

    async fn pair() -> (Watched, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = TcpStream::connect(listener.local_addr().unwrap());
        let (here, there) = tokio::join!(listener.accept(), there);
        (Watched::new(here.unwrap().0), there.unwrap())
    }

    /// Waits as a server does that has nothing to say: it flushes whenever it is woken.
    async fn silence(here: &mut Watched) -> std::io::Error {
        let flushed = poll_fn(|context| match Pin::new(&mut *here).poll_flush(context) {
            Poll::Ready(Err(error)) => Poll::Ready(error),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        });
        flushed.await
    }

    #[tokio::test]
    async fn a_client_who_leaves_in_silence_is_noticed() {
        let (mut here, there) = pair().await;
        here.flush().await.unwrap();
        let (error, ()) = tokio::join!(silence(&mut here), async {
            tokio::task::yield_now().await;
            drop(there);
        });
        assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
    }

    #[tokio::test]
    async fn what_a_client_has_said_ahead_is_still_there_to_be_read() {
        let (mut here, mut there) = pair().await;
        there.write_all(b"next").await.unwrap();
        here.stream.readable().await.unwrap();
        here.flush().await.unwrap();
        let mut said = [0; 4];
        here.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"next");
    }

    /// Whoever waits for bytes is told that there will be none, and may have something to say to that.
    #[tokio::test]
    async fn a_client_who_leaves_while_it_is_listened_to_can_be_answered() {
        let (mut here, mut there) = pair().await;
        let mut byte = [0];
        tokio::select! {
            biased;
            _ = here.read(&mut byte) => panic!("nothing was said"),
            () = tokio::task::yield_now() => {}
        }
        there.shutdown().await.unwrap();
        here.stream.readable().await.unwrap();
        here.flush().await.unwrap();
        assert_eq!(here.read(&mut byte).await.unwrap(), 0);
        here.write_all(b"too short").await.unwrap();
        let mut answer = [0; 9];
        there.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"too short");
    }
}

//! The content of an answer, piece by piece as the socket gives it. Nothing is held between two pieces but what
//! cannot be understood yet. At its end the connection is kept for the next question; dropped before that, it
//! hangs up.

use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;

use super::Broken;
use super::pool::Pool;
use super::reading::{Head, Reading};

/// How much is taken from the socket at once.
const READ_BYTES: usize = 8 * 1024;

#[derive(Debug)]
pub(crate) struct Body {
    socket: Option<TcpStream>,
    reading: Reading,
    host: Arc<str>,
    pool: Arc<Pool>,
    /// The connection can be asked again, if the answer allows it.
    again: bool,
    /// What came with the head was not looked at yet.
    behind_head: bool,
}

impl Body {
    pub(super) fn new(socket: TcpStream, reading: Reading, host: Arc<str>, pool: Arc<Pool>) -> Self {
        Self {
            socket: Some(socket),
            reading,
            host,
            pool,
            again: true,
            behind_head: true,
        }
    }

    /// The question did not go out whole.
    pub(super) fn never_again(&mut self) {
        self.again = false;
    }

    pub(super) async fn head(&mut self) -> Result<Head, Broken> {
        loop {
            match poll_fn(|context| self.poll_read(context, Reading::head)).await? {
                Some(Some(head)) => {
                    self.keep_connection();
                    return Ok(head);
                }
                Some(None) => {}
                None => return Err(Broken::Cut),
            }
        }
    }

    /// Never an empty piece. `None`: that was all.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, Broken>> {
        loop {
            if self.reading.has_ended() {
                return None;
            }
            let read = if std::mem::take(&mut self.behind_head) {
                self.reading.content(&[]).map(Some)
            } else {
                poll_fn(|context| self.poll_read(context, Reading::content)).await
            };
            self.keep_connection();
            match read {
                Ok(Some(piece)) if piece.is_empty() => {}
                Ok(Some(piece)) => return Some(Ok(piece)),
                Ok(None) => return self.reading.close().err().map(Err),
                Err(error) => {
                    self.socket = None;
                    return Some(Err(error));
                }
            }
        }
    }

    /// `None`: the server has closed the connection.
    fn poll_read<T>(
        &mut self,
        context: &mut Context<'_>,
        understand: fn(&mut Reading, &[u8]) -> Result<T, Broken>,
    ) -> Poll<Result<Option<T>, Broken>> {
        let Some(socket) = &mut self.socket else {
            return Poll::Ready(Ok(None));
        };
        // On the stack, for as long as it takes to look at it: a silent server holds no buffer.
        let mut room = [const { MaybeUninit::uninit() }; READ_BYTES];
        let mut room = ReadBuf::uninit(&mut room);
        ready!(Pin::new(socket).poll_read(context, &mut room))?;
        Poll::Ready(match room.filled() {
            [] => Ok(None),
            bytes => understand(&mut self.reading, bytes).map(Some),
        })
    }

    /// Once nothing more will come.
    fn keep_connection(&mut self) {
        if self.reading.has_ended()
            && let Some(socket) = self.socket.take()
            && self.again
            && self.reading.is_reusable()
        {
            self.pool.put(self.host.clone(), socket);
        }
    }
}

//! Reads a body within limits of bytes and time: completely into memory, or piece by piece into a writer.

use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use ir::{Error, Phase};
use spill::ChunkedWriter;
use tokio::time::{Instant, timeout};

use super::response::{HttpResponse, ResponseBody};
use super::transport_error;
use crate::spill_error::unkept;

pub(crate) async fn collect(
    reply: HttpResponse,
    limit: usize,
    idle: Duration,
    deadline: Instant,
) -> Result<Vec<u8>, Error> {
    let mut body = Body::of(reply, limit, idle, deadline)?;
    let mut whole = Vec::new();
    while let Some(piece) = body.next().await? {
        whole.extend_from_slice(&piece);
    }
    Ok(whole)
}

/// Writes every piece to `out` and returns `out` at the end.
pub(super) async fn copy_to<W: Write + Send + 'static>(
    reply: HttpResponse,
    limit: usize,
    idle: Duration,
    deadline: Instant,
    out: W,
) -> Result<W, Error> {
    let mut body = Body::of(reply, limit, idle, deadline)?;
    let mut writer = ChunkedWriter::new(out);
    while let Some(piece) = body.next().await? {
        writer = writer.push(&piece).await.map_err(|error| unkept(&error))?;
    }
    writer.finish().await.map_err(|error| unkept(&error))
}

struct Body {
    content: ResponseBody,
    limit: usize,
    left: usize,
    idle: Duration,
    deadline: Instant,
}

impl Body {
    fn of(reply: HttpResponse, limit: usize, idle: Duration, deadline: Instant) -> Result<Self, Error> {
        if reply.length().unwrap_or(0) > limit as u64 {
            return Err(transport_error::too_large(limit));
        }
        Ok(Self {
            content: reply.content,
            limit,
            left: limit,
            idle,
            deadline,
        })
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let time = self.deadline.saturating_duration_since(Instant::now());
        let time_left = self.idle.min(time);
        match timeout(time_left, self.content.next()).await {
            Ok(Some(Ok(piece))) => {
                let left = self.left.checked_sub(piece.len());
                self.left = left.ok_or_else(|| transport_error::too_large(self.limit))?;
                Ok(Some(piece))
            }
            Ok(Some(Err(error))) => Err(error),
            Ok(None) => Ok(None),
            Err(_) => Err(transport_error::idle_timeout(Phase::MidStream, time_left)),
        }
    }
}

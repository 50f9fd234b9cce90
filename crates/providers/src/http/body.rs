//! A whole body within a limit of bytes and time. Nothing beyond the limit is held.

use std::time::Duration;

use futures::StreamExt;
use ir::{Error, Phase};
use tokio::time::{Instant, timeout};

use super::fault;

pub(super) async fn gather(
    response: reqwest::Response,
    limit: usize,
    idle: Duration,
    deadline: Instant,
) -> Result<Vec<u8>, Error> {
    let announced = response.content_length().unwrap_or(0);
    if announced > limit as u64 {
        return Err(fault::too_large(limit));
    }
    let mut body = Vec::new();
    let mut bytes = response.bytes_stream();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match timeout(idle.min(left), bytes.next()).await {
            Ok(Some(Ok(piece))) if body.len() + piece.len() <= limit => body.extend_from_slice(&piece),
            Ok(Some(Ok(_))) => return Err(fault::too_large(limit)),
            Ok(Some(Err(error))) => return Err(fault::transport(&error, Phase::MidStream)),
            Ok(None) => return Ok(body),
            Err(_) => return Err(fault::silence(Phase::MidStream, idle.min(left))),
        }
    }
}

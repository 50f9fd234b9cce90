//! What a client still sends after its request was refused. It is read for a while, because closing the connection
//! at once resets it, and the client may then lose the response.

use axum::body::BodyDataStream;
use futures::StreamExt;

use crate::limits;
use crate::state::Gateway;

/// Reads the rest of a body in the background, within limits of bytes and time.
pub(crate) fn discard(gateway: &Gateway, mut pieces: BodyDataStream) {
    let reading = async move {
        let mut left = limits::DISCARDED_BYTES_MAX;
        while let Some(Ok(piece)) = pieces.next().await {
            left = left.saturating_sub(piece.len());
            if left == 0 {
                break;
            }
        }
    };
    let stopping = gateway.stopping.clone();
    gateway.sockets.spawn(async move {
        tokio::select! {
            () = reading => {}
            () = stopping.cancelled() => {}
            () = tokio::time::sleep(limits::DISCARD_TIME) => {}
        }
    });
}

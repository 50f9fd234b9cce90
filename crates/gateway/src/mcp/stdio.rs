//! MCP over a pair of pipes: one host, which started this process and is its user.

use std::io;

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::transport::McpTransport;
use super::server::Mcp;
use crate::limits;
use crate::stream_limit::ClientStreams;
use crate::state::Gateway;

/// Speaks with the host at the other end until it hangs up, or until `stop`. Nothing but the protocol is
/// ever written.
pub async fn serve_stdio<R, W>(gateway: Gateway, read: R, write: W, stop: CancellationToken) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let transport = AsyncRwTransport::new_server(read, write).with_max_line_length(limits::BODY_BYTES_MAX);
    let server = Mcp::new(gateway.clone(), McpTransport::Pipe(ClientStreams::local_process()));
    let served = serve_server_with_ct(server, transport, stop).await;
    let outcome = match served {
        Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
        // A host may leave before it has said anything.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    };
    gateway.ended.cancel();
    gateway.engine.stop().await;
    outcome
}

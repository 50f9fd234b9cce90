//! MCP over a pair of pipes: one host, which started this process and is the local user.

use std::io;

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::server::Mcp;
use super::transport::McpTransport;
use crate::limits;
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;

/// Serves the host until it disconnects or `stop` is cancelled. Only protocol messages are written.
pub async fn serve_stdio<R, W>(gateway: Gateway, read: R, write: W, stop: CancellationToken) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let transport = AsyncRwTransport::new_server(read, write).with_max_line_length(limits::BODY_BYTES_MAX);
    let server = Mcp::new(
        gateway.clone(),
        McpTransport::Pipe(ClientStreams::local_process()),
    );
    let served = serve_server_with_ct(server, transport, stop).await;
    let outcome = match served {
        Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
        // A host may disconnect before initialization.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    };
    gateway.ended.cancel();
    gateway.engine().stop().await;
    outcome
}

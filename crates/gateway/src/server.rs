//! Serving and stopping. When told to stop, new connections are refused, runs get a while to end, and
//! what still runs then is left in the journal for the next server.

use std::io;

use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::limits;
use crate::route::router;
use crate::state::Gateway;

/// Serves until `shutdown` completes.
pub async fn serve(
    listener: TcpListener,
    gateway: Gateway,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let engine = gateway.engine.clone();
    let stopping = CancellationToken::new();
    // Chunks are small and a person waits for them.
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            warn!(%error, "cannot set TCP_NODELAY");
        }
    });
    let server = axum::serve(listener, router(gateway))
        .with_graceful_shutdown(stopping.clone().cancelled_owned())
        .into_future();
    let stop = async {
        shutdown.await;
        stopping.cancel();
        if tokio::time::timeout(limits::DRAIN, engine.drain()).await.is_err() {
            warn!("stopping with runs unfinished");
        }
        engine.stop().await;
        tokio::time::sleep(limits::CLOSE).await;
    };
    tokio::select! {
        served = server => served,
        () = stop => Ok(()),
    }
}

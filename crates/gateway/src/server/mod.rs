//! Server loop and shutdown. Limits apply to the number of connections in total and per address, the time for
//! request headers and stalled readers. On shutdown, new connections are refused and runs and relayed calls get the drain time to
//! end; then unfinished runs are left in the journal for recovery, and calls are cancelled.

mod connections;
mod log_limit;
mod network;
mod protocol;
mod stall_timeout;
mod tls;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::{io, time::Duration};

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use futures::FutureExt;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;
use tracing::{debug, warn};

use self::connections::{ConnectionGuard, Connections};
use self::log_limit::LogLimit;
use self::protocol::{Protocol, Protocols};
use self::stall_timeout::StallTimeoutIo;
use crate::limits;
use crate::request;
use crate::route::router;
use crate::settings::Settings;
use crate::state::Gateway;

pub use network::Network;
pub use tls::Tls;

/// Serves until `shutdown` completes; with `tls`, only encrypted connections.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    gateway: Gateway,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let settings = gateway.settings().clone();
    let server = Server {
        tls,
        protocols: Arc::new(Protocols::new(&settings)),
        router: router(gateway.clone()),
        gateway: gateway.clone(),
        settings,
        connections: TaskTracker::new(),
        leave: ConnectionShutdown {
            graceful: gateway.stopping.clone(),
            forced: CancellationToken::new(),
        },
    };
    tokio::select! {
        () = server.accept(&listener) => {}
        () = shutdown => {}
    }
    drop(listener);
    server.stop().await;
    Ok(())
}

struct Server {
    tls: Option<Tls>,
    protocols: Arc<Protocols>,
    router: Router,
    gateway: Gateway,
    settings: Arc<Settings>,
    connections: TaskTracker,
    leave: ConnectionShutdown,
}

/// Shutdown signals of connections: graceful first, then forced.
#[derive(Clone)]
struct ConnectionShutdown {
    graceful: CancellationToken,
    forced: CancellationToken,
}

impl Server {
    /// Accepts connections until cancelled; above the limit they wait in the backlog of the operating system.
    async fn accept(&self, listener: &TcpListener) {
        let open = Arc::new(Connections::new(&self.settings));
        let mut failures = LogLimit::new(limits::LOG_INTERVAL);
        let mut refusals = LogLimit::new(limits::LOG_INTERVAL);
        loop {
            open.room().await;
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Usually out of file descriptors, until other connections are closed.
                    if let Some(times) = failures.count(Instant::now()) {
                        warn!(%error, times, "accept failed");
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let Some(guard) = open.admit(peer.ip(), Instant::now()) else {
                if let Some(times) = refusals.count(Instant::now()) {
                    warn!(address = %peer.ip(), times, "connection over the limit of its address closed");
                }
                continue;
            };
            let guard = Arc::new(guard);
            let connection = self.connection(stream, peer, guard.clone());
            let connections = self.gateway.metrics.connections.clone();
            connections.inc();
            self.connections.spawn(async move {
                if guard.serve(connection).await.is_none() {
                    debug!("connection without a request closed for another one");
                }
                connections.dec();
            });
        }
    }

    async fn stop(&self) {
        let gateway = &self.gateway;
        self.leave.graceful.cancel();
        let end = Instant::now() + gateway.current().settings().drain;
        if tokio::time::timeout_at(end, gateway.engine().drain())
            .await
            .is_err()
        {
            warn!("shutdown timed out; unfinished runs are left for recovery");
        }
        gateway.engine().stop().await;
        gateway.ended.cancel();
        self.connections.close();
        gateway.sockets.close();
        let closed = async || {
            self.connections.wait().await;
            gateway.sockets.wait().await;
        };
        while tokio::time::timeout(limits::CLOSE, closed()).await.is_err() {
            // A relayed call that waited for others, or that is retried, gets the same drain time.
            if gateway.engine().running() > 0 && Instant::now() < end {
                continue;
            }
            // Connections that were not drained in time are closed; their attempts are recorded in the
            // accounting.
            self.leave.forced.cancel();
            let hung_up = gateway.engine().relays_drained();
            tokio::time::timeout(limits::CLOSE, hung_up).await.ok();
            return;
        }
    }

    fn connection(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        guard: Arc<ConnectionGuard>,
    ) -> impl Future<Output = ()> + Send + use<> {
        // Chunks are small and latency-sensitive.
        if let Err(error) = stream.set_nodelay(true) {
            warn!(%error, "setting TCP_NODELAY failed");
        }
        let tls = self.tls.as_ref().map(Tls::acceptor);
        let protocols = self.protocols.clone();
        let router = self.router.clone();
        let leave = self.leave.clone();
        let (stall, opening) = (self.settings.write_stall, self.settings.header_read);
        async move {
            let Some(acceptor) = tls else {
                let protocol = tokio::select! {
                    protocol = protocols.detect_plaintext(&stream, opening) => protocol,
                    () = leave.graceful.cancelled() => return,
                };
                let Some(protocol) = protocol else {
                    return debug!("client sent no request before the timeout");
                };
                let stream = StallTimeoutIo::new(stream, stall, opening);
                return serve_connection(protocol, router, stream, (peer, guard), leave).await;
            };
            let handshake = tokio::time::timeout(limits::HANDSHAKE, acceptor.accept(stream));
            match handshake.await {
                Ok(Ok(stream)) => {
                    let protocol = protocols.negotiated(stream.get_ref().1.alpn_protocol());
                    let stream = StallTimeoutIo::new(stream, stall, opening);
                    serve_connection(protocol, router, stream, (peer, guard), leave)
                        .boxed()
                        .await;
                }
                Ok(Err(error)) => debug!(%error, "TLS handshake failed"),
                Err(_) => debug!("TLS handshake timed out"),
            }
        }
    }
}

async fn serve_connection<S>(
    protocol: Protocol,
    router: Router,
    stream: StallTimeoutIo<S>,
    (peer, guard): (SocketAddr, Arc<ConnectionGuard>),
    leave: ConnectionShutdown,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = tower::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        guard.on_request();
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        // Boxed: otherwise the connection keeps the memory of the future after the response.
        let mut router = router.clone();
        request::handle(request, move |request| router.call(request)).boxed()
    });
    let (stream, service) = (TokioIo::new(stream), TowerToHyperService::new(service));
    match protocol {
        Protocol::Http1(builder) => {
            let connection = builder.serve_connection(stream, service).with_upgrades();
            until_stopped(connection, leave, |connection| connection.graceful_shutdown()).await;
        }
        Protocol::Auto(builder) => {
            let connection = builder.serve_connection_with_upgrades(stream, service);
            let served = until_stopped(connection, leave, |connection| connection.graceful_shutdown());
            served.boxed().await;
        }
    }
}

async fn until_stopped<C, E>(connection: C, leave: ConnectionShutdown, stop: fn(Pin<&mut C>))
where
    C: Future<Output = Result<(), E>>,
    E: std::fmt::Display,
{
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = leave.graceful.cancelled() => {
            stop(connection.as_mut());
            tokio::select! {
                ended = connection => ended,
                () = leave.forced.cancelled() => return debug!("connection closed at shutdown"),
            }
        }
    };
    if let Err(error) = ended {
        debug!(%error, "connection failed");
    }
}

//! Serving and stopping. Connections have limits on how many there are, how long their headers take and
//! how long their readers may stall. When told to stop, new connections are refused, runs and relayed calls get a
//! while to end; runs that are not done then are left in the journal for the next server, and calls are cut off.

mod aside;
mod stall_timeout;
mod protocol;
mod tls;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::{io, time::Duration};

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use engine::Engine;
use futures::FutureExt;
use futures::future::BoxFuture;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;
use tracing::{debug, warn};

use self::aside::Aside;
use self::stall_timeout::StallTimeoutIo;
use self::protocol::{Protocol, Protocols};
use crate::limits;
use crate::route::router;
use crate::settings::Settings;
use crate::state::Gateway;

pub use tls::Tls;

/// Serves until `shutdown` completes; with `tls`, over nothing else.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    gateway: Gateway,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let settings = gateway.settings();
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

/// How connections are ended: they are told to, and those that do not are cut off.
#[derive(Clone)]
struct ConnectionShutdown {
    graceful: CancellationToken,
    forced: CancellationToken,
}

impl Server {
    /// Takes connections for ever; over the limit they wait in the operating system's queue.
    async fn accept(&self, listener: &TcpListener) {
        let seats = Arc::new(Semaphore::new(self.settings.connections_max));
        loop {
            let Ok(seat) = seats.clone().acquire_owned().await else {
                return;
            };
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file handles, usually: others must go first.
                    warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let connection = self.connection(stream, peer);
            let connections = self.gateway.metrics.connections.clone();
            connections.inc();
            self.connections.spawn(async move {
                connection.await;
                connections.dec();
                drop(seat);
            });
        }
    }

    async fn stop(&self) {
        let gateway = &self.gateway;
        self.leave.graceful.cancel();
        let end = Instant::now() + gateway.settings().drain;
        if tokio::time::timeout_at(end, gateway.engine.drain())
            .await
            .is_err()
        {
            warn!("stopping with work unfinished; the next server will take up what it can");
        }
        gateway.engine.stop().await;
        gateway.ended.cancel();
        self.connections.close();
        gateway.sockets.close();
        let closed = async || {
            self.connections.wait().await;
            gateway.sockets.wait().await;
        };
        while tokio::time::timeout(limits::CLOSE, closed()).await.is_err() {
            // A relayed call that waited for others to end, or that is made once more, has the time that they had.
            if gateway.engine.running() > 0 && Instant::now() < end {
                continue;
            }
            // Whoever does not read to the end in time is cut off, and what was asked for them goes into the accounts.
            self.leave.forced.cancel();
            let hung_up = gateway.engine.relays_drained();
            tokio::time::timeout(limits::CLOSE, hung_up).await.ok();
            return;
        }
    }

    fn connection(&self, stream: TcpStream, peer: SocketAddr) -> BoxFuture<'static, ()> {
        // Chunks are small and a person waits for them.
        if let Err(error) = stream.set_nodelay(true) {
            warn!(%error, "cannot set TCP_NODELAY");
        }
        let tls = self.tls.as_ref().map(Tls::acceptor);
        let protocols = self.protocols.clone();
        let router = self.router.clone();
        let leave = self.leave.clone();
        let engine = self.gateway.engine.clone();
        let (stall, opening) = (self.settings.write_stall, self.settings.header_read);
        // Each in a box of its own: a plain connection does not carry the room that an encrypted one needs.
        match tls {
            None => async move {
                let protocol = tokio::select! {
                    protocol = protocols.detect_plaintext(&stream, opening) => protocol,
                    () = leave.graceful.cancelled() => return,
                };
                let Some(protocol) = protocol else {
                    return debug!("a client said nothing for too long");
                };
                let stream = StallTimeoutIo::new(stream, stall, opening);
                serve_connection(protocol, router, stream, engine, peer, leave).await;
            }
            .boxed(),
            Some(acceptor) => async move {
                let handshake = tokio::time::timeout(limits::HANDSHAKE, acceptor.accept(stream));
                match handshake.await {
                    Ok(Ok(stream)) => {
                        let protocol = protocols.from_alpn(stream.get_ref().1.alpn_protocol());
                        let stream = StallTimeoutIo::new(stream, stall, opening);
                        serve_connection(protocol, router, stream, engine, peer, leave).await;
                    }
                    Ok(Err(error)) => debug!(%error, "no handshake"),
                    Err(_) => debug!("a handshake took too long"),
                }
            }
            .boxed(),
        }
    }
}

async fn serve_connection<S>(
    protocol: Protocol,
    router: Router,
    stream: StallTimeoutIo<S>,
    engine: Arc<Engine>,
    peer: SocketAddr,
    leave: ConnectionShutdown,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = tower::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        // In a box, or the connection keeps the room for it after it has answered.
        router.clone().call(request).boxed()
    });
    let stream = Aside::new(stream, move || engine.is_crowded());
    let (stream, service) = (TokioIo::new(stream), TowerToHyperService::new(service));
    match protocol {
        Protocol::Http1(builder) => {
            let connection = builder.serve_connection(stream, service).with_upgrades();
            until_stopped(connection, leave, |connection| connection.graceful_shutdown()).await;
        }
        // In a box, so that the others do not carry its room.
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
                () = leave.forced.cancelled() => return debug!("a connection was cut off"),
            }
        }
    };
    if let Err(error) = ended {
        debug!(%error, "a connection ended");
    }
}

//! Serving and stopping. Connections have limits on how many there are, how long their headers take and
//! how long their readers may stall. When told to stop, new connections are refused, runs get a while
//! to end, and what still runs then is left in the journal for the next server.

mod aside;
mod patience;
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
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;
use tracing::{debug, warn};

use self::aside::Aside;
use self::patience::Patience;
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
    };
    tokio::select! {
        () = server.accept(&listener) => {}
        () = shutdown => {}
    }
    drop(listener);
    gateway.stopping.cancel();
    let drain = gateway.settings().drain;
    if tokio::time::timeout(drain, gateway.engine.drain()).await.is_err() {
        warn!("stopping with runs unfinished; the next server will take them up");
    }
    gateway.engine.stop().await;
    gateway.ended.cancel();
    server.connections.close();
    gateway.sockets.close();
    let closed = async {
        server.connections.wait().await;
        gateway.sockets.wait().await;
    };
    // Whoever does not read to the end in time is cut off.
    tokio::time::timeout(limits::CLOSE, closed).await.ok();
    Ok(())
}

struct Server {
    tls: Option<Tls>,
    protocols: Arc<Protocols>,
    router: Router,
    gateway: Gateway,
    settings: Arc<Settings>,
    connections: TaskTracker,
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

    fn connection(&self, stream: TcpStream, peer: SocketAddr) -> BoxFuture<'static, ()> {
        // Chunks are small and a person waits for them.
        if let Err(error) = stream.set_nodelay(true) {
            warn!(%error, "cannot set TCP_NODELAY");
        }
        let tls = self.tls.as_ref().map(Tls::acceptor);
        let protocols = self.protocols.clone();
        let router = self.router.clone();
        let stopping = self.gateway.stopping.clone();
        let engine = self.gateway.engine.clone();
        let (stall, opening) = (self.settings.write_stall, self.settings.header_read);
        // Each in a box of its own: a plain connection does not carry the room that an encrypted one needs.
        match tls {
            None => async move {
                let protocol = tokio::select! {
                    protocol = protocols.of_plain(&stream, opening) => protocol,
                    () = stopping.cancelled() => return,
                };
                let Some(protocol) = protocol else {
                    return debug!("a client said nothing for too long");
                };
                let stream = Patience::new(stream, stall, opening);
                talk(protocol, router, stream, engine, peer, stopping).await;
            }
            .boxed(),
            Some(acceptor) => async move {
                let handshake = tokio::time::timeout(limits::HANDSHAKE, acceptor.accept(stream));
                match handshake.await {
                    Ok(Ok(stream)) => {
                        let protocol = protocols.of_encrypted(stream.get_ref().1.alpn_protocol());
                        let stream = Patience::new(stream, stall, opening);
                        talk(protocol, router, stream, engine, peer, stopping).await;
                    }
                    Ok(Err(error)) => debug!(%error, "no handshake"),
                    Err(_) => debug!("a handshake took too long"),
                }
            }
            .boxed(),
        }
    }
}

async fn talk<S>(
    protocol: Protocol,
    router: Router,
    stream: Patience<S>,
    engine: Arc<Engine>,
    peer: SocketAddr,
    stopping: CancellationToken,
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
        Protocol::First(builder) => {
            let connection = builder.serve_connection(stream, service).with_upgrades();
            until_stopped(connection, stopping, |connection| connection.graceful_shutdown()).await;
        }
        // In a box, so that the others do not carry its room.
        Protocol::Any(builder) => {
            let connection = builder.serve_connection_with_upgrades(stream, service);
            let served = until_stopped(connection, stopping, |connection| connection.graceful_shutdown());
            served.boxed().await;
        }
    }
}

async fn until_stopped<C, E>(connection: C, stopping: CancellationToken, stop: fn(Pin<&mut C>))
where
    C: Future<Output = Result<(), E>>,
    E: std::fmt::Display,
{
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopping.cancelled() => {
            stop(connection.as_mut());
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "a connection ended");
    }
}

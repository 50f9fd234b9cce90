//! Opens connections: directly or through a proxy, with TLS for `https` URLs, within one timeout.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;
use tower::Service;

use super::unsent_request::AbortableStream;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Connects to the host of a URL.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    https: HttpsConnector<TcpOrProxy>,
    /// Name resolution, proxy and TLS handshake included.
    timeout: Option<Duration>,
}

impl Connector {
    pub(super) fn new(tls: ClientConfig, proxies: Arc<Matcher>, timeout: Option<Duration>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let to_proxy = HttpsConnectorBuilder::new()
            .with_tls_config(tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp.clone());
        let route = TcpOrProxy {
            tcp,
            to_proxy,
            proxies,
        };
        Self {
            https: HttpsConnectorBuilder::new()
                .with_tls_config(tls)
                .https_or_http()
                .enable_all_versions()
                .wrap_connector(route),
            timeout,
        }
    }
}

impl Service<Uri> for Connector {
    type Response = AbortableStream<MaybeHttpsStream<RoutedStream>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.https.call(uri).map_ok(AbortableStream::from);
        let Some(limit) = self.timeout else {
            return connecting.boxed();
        };
        let limited = async move {
            timeout(limit, connecting).await.unwrap_or_else(|_| {
                let message = format!("no connection after {} ms", limit.as_millis());
                Err(io::Error::new(io::ErrorKind::TimedOut, message).into())
            })
        };
        limited.boxed()
    }
}

/// Selects the proxy, if any. TLS with the destination is established over the result.
#[derive(Clone, Debug)]
struct TcpOrProxy {
    tcp: HttpConnector,
    to_proxy: HttpsConnector<HttpConnector>,
    proxies: Arc<Matcher>,
}

impl Service<Uri> for TcpOrProxy {
    type Response = RoutedStream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<RoutedStream, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let mut route = self.clone();
        let connecting = async move {
            let Some(proxy) = route.proxies.intercept(&uri) else {
                let stream = MaybeHttpsStream::Http(route.tcp.call(uri).await?);
                return Ok(RoutedStream {
                    stream,
                    forwards: false,
                });
            };
            route.through(&proxy, uri).await
        };
        connecting.boxed()
    }
}

impl TcpOrProxy {
    async fn through(mut self, proxy: &Intercept, uri: Uri) -> Result<RoutedStream, BoxError> {
        let address = proxy.uri().clone();
        let forwards = false;
        if let Some("socks5" | "socks5h") = address.scheme_str() {
            let local_dns = address.scheme_str() == Some("socks5");
            let mut socks = SocksV5::new(address, self.tcp).local_dns(local_dns);
            if let Some((user, password)) = proxy.raw_auth() {
                socks = socks.with_auth(String::from(user), String::from(password));
            }
            let stream = MaybeHttpsStream::Http(socks.call(uri).await?);
            return Ok(RoutedStream { stream, forwards });
        }
        if uri.scheme_str() == Some("https") {
            let mut tunnel = Tunnel::new(address, self.to_proxy);
            if let Some(credentials) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(credentials.clone());
            }
            let stream = tunnel.call(uri).await?;
            return Ok(RoutedStream { stream, forwards });
        }
        let stream = self.to_proxy.call(address).await?;
        Ok(RoutedStream {
            stream,
            forwards: true,
        })
    }
}

/// A connection to the destination, or to a proxy that forwards requests to it.
#[derive(Debug)]
pub(super) struct RoutedStream {
    stream: MaybeHttpsStream<TokioIo<TcpStream>>,
    /// Requests on it are addressed to a proxy and carry the whole URL.
    forwards: bool,
}

impl Connection for RoutedStream {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.forwards)
    }
}

impl Read for RoutedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for RoutedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}

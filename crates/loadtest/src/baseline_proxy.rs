//! A minimal proxy as the baseline: it parses the body, calls a pooled upstream, parses every event, and
//! forwards the bytes. It shows the reachable minimum and is not a product.

use std::hint::black_box;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use anyhow::Result;
use bytes::{Bytes, BytesMut};
use clap::Args;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpListener;

type ProxyError = Box<dyn std::error::Error + Send + Sync>;
type ProxyBody = BoxBody<Bytes, ProxyError>;

#[derive(Debug, Args)]
pub(crate) struct BaselineProxy {
    /// Listening address; port 0 selects a free one, which is printed.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Address of the upstream.
    #[arg(long)]
    upstream: SocketAddr,
}

impl BaselineProxy {
    #[expect(clippy::print_stdout, reason = "the caller reads the address")]
    pub(crate) async fn serve(self) -> Result<()> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(4096)
            .build(connector);
        let listener = TcpListener::bind(self.listen).await?;
        println!("listening on {}", listener.local_addr()?);
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                continue;
            };
            stream.set_nodelay(true)?;
            let client = client.clone();
            let upstream = self.upstream;
            tokio::spawn(async move {
                let service = service_fn(|request| pass(request, client.clone(), upstream));
                // A client disconnect is not an error here.
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await
                    .ok();
            });
        }
    }
}

async fn pass(
    request: Request<Incoming>,
    client: Client<HttpConnector, Full<Bytes>>,
    upstream: SocketAddr,
) -> Result<Response<ProxyBody>, ProxyError> {
    if !request.headers().contains_key("authorization") {
        let mut response = Response::new(full(Bytes::new()));
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        return Ok(response);
    }
    let path = request.uri().path().to_owned();
    let asked: Value = serde_json::from_slice(&request.into_body().collect().await?.to_bytes())?;
    let onward = Request::post(format!("http://{upstream}{path}"))
        .header("content-type", "application/json")
        .header("authorization", "Bearer x")
        .body(Full::new(Bytes::from(serde_json::to_vec(&asked)?)))?;
    let response = client.request(onward).await?;
    let (head, body) = response.into_parts();
    let mut builder = Response::builder().status(head.status);
    if let Some(kind) = head.headers.get("content-type") {
        builder = builder.header("content-type", kind);
    }
    if asked["stream"].as_bool() == Some(true) {
        let events = Events {
            inner: body,
            rest: BytesMut::new(),
        };
        return Ok(builder.body(events.boxed())?);
    }
    let answer: Value = serde_json::from_slice(&body.collect().await?.to_bytes())?;
    black_box(answer["usage"]["completion_tokens"].as_u64());
    Ok(builder.body(full(Bytes::from(serde_json::to_vec(&answer)?)))?)
}

/// A stream that parses every event before it forwards the bytes.
struct Events {
    inner: Incoming,
    rest: BytesMut,
}

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = ProxyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ProxyError>>> {
        loop {
            let frame = match hyper::body::Body::poll_frame(Pin::new(&mut self.inner), context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
                Poll::Ready(Some(Ok(frame))) => frame,
            };
            let Ok(data) = frame.into_data() else { continue };
            self.rest.extend_from_slice(&data);
            let Some(last) = memchr::memmem::rfind(&self.rest, b"\n\n") else {
                continue;
            };
            let whole = self.rest.split_to(last + 2).freeze();
            for event in memchr::memmem::find_iter(&whole, b"data: ") {
                let start = event + b"data: ".len();
                let Some(data) = whole.get(start..) else { continue };
                let end = memchr::memchr(b'\n', data).unwrap_or(data.len());
                if let Some(Ok(value)) = data.get(..end).map(serde_json::from_slice::<Value>) {
                    black_box(value["choices"][0]["delta"]["content"].as_str());
                    black_box(value["usage"]["completion_tokens"].as_u64());
                }
            }
            return Poll::Ready(Some(Ok(Frame::data(whole))));
        }
    }
}

fn full(bytes: Bytes) -> ProxyBody {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}

//! A model server that costs next to nothing, so that what is measured is whoever stands before it.
//! `GET /stats` counts requests, streams, tokens, and streams whose reader went away, with the time of the
//! last such loss.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use clap::Args;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::behaviour::Behaviour;
use crate::process::now_us;
use crate::reply::{self, Events};

const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Events on their way to a reader.
const AHEAD: usize = 32;

type Body = BoxBody<Bytes, io::Error>;

#[derive(Args)]
pub(crate) struct Upstream {
    /// Where to listen; port 0 takes any free one, which is printed.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

#[derive(Default)]
struct Stats {
    requests: AtomicU64,
    streams: AtomicU64,
    tokens: AtomicU64,
    cancelled: AtomicU64,
    last_cancel_us: AtomicU64,
}

impl Upstream {
    #[expect(clippy::print_stdout, reason = "whoever started it waits for the address")]
    pub(crate) async fn serve(self) -> Result<()> {
        let listener = TcpListener::bind(self.listen).await?;
        println!("listening on {}", listener.local_addr()?);
        let stats = Arc::new(Stats::default());
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                continue;
            };
            stream.set_nodelay(true)?;
            let stats = stats.clone();
            tokio::spawn(async move {
                let service = service_fn(|request| answer(request, stats.clone()));
                // A client that hangs up is what some measurements are about.
                auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await
                    .ok();
            });
        }
    }
}

async fn answer(request: Request<Incoming>, stats: Arc<Stats>) -> Result<Response<Body>, Infallible> {
    match request.uri().path() {
        "/health" => return Ok(document(StatusCode::OK, &json!({"ok": true}))),
        "/stats" => return Ok(document(StatusCode::OK, &stats.show())),
        path if path.ends_with("/models") => {
            let models = json!({"object": "list", "data": [{"id": "mock", "object": "model"}]});
            return Ok(document(StatusCode::OK, &models));
        }
        path if path.ends_with("/chat/completions") => {}
        _ => return Ok(refusal(StatusCode::NOT_FOUND, "no such route")),
    }
    let Ok(body) = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await else {
        return Ok(refusal(StatusCode::BAD_REQUEST, "the body broke off"));
    };
    let Ok(asked) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return Ok(refusal(StatusCode::BAD_REQUEST, "no JSON"));
    };
    stats.requests.fetch_add(1, Ordering::Relaxed);
    let model = asked["model"].as_str().unwrap_or("mock");
    let behaviour = Behaviour::of(model);
    if asked["stream"].as_bool() == Some(true) {
        stats.streams.fetch_add(1, Ordering::Relaxed);
        return Ok(stream(model, behaviour, stats));
    }
    wait(behaviour.first).await;
    Ok(framed("application/json", full(reply::whole(model, behaviour))))
}

fn stream(model: &str, behaviour: Behaviour, stats: Arc<Stats>) -> Response<Body> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let events = Events::new(model, behaviour);
    tokio::spawn(async move {
        if speak(&sender, &events, behaviour, &stats).await.is_err() {
            stats.cancelled.fetch_add(1, Ordering::Relaxed);
            stats.last_cancel_us.store(now_us(), Ordering::Relaxed);
        }
    });
    let body = StreamBody::new(ReceiverStream::new(receiver));
    framed("text/event-stream", BodyExt::boxed(body))
}

type Sender = mpsc::Sender<Result<Frame<Bytes>, io::Error>>;

/// Fails when nobody reads any more.
async fn speak(
    sender: &Sender,
    events: &Events,
    behaviour: Behaviour,
    stats: &Stats,
) -> Result<(), mpsc::error::SendError<Result<Frame<Bytes>, io::Error>>> {
    wait(behaviour.first).await;
    for event in [Some(&events.first), events.head.as_ref()].into_iter().flatten() {
        sender.send(Ok(Frame::data(event.clone()))).await?;
    }
    for number in 0..behaviour.tokens {
        if behaviour.dies_after.is_some_and(|last| number >= last) {
            let death = io::Error::new(io::ErrorKind::ConnectionReset, "dead as the model's name says");
            return sender.send(Err(death)).await;
        }
        if number > 0 {
            wait(behaviour.gap).await;
        }
        sender.send(Ok(Frame::data(events.token.clone()))).await?;
        stats.tokens.fetch_add(1, Ordering::Relaxed);
    }
    for event in [events.tail.as_ref(), Some(&events.last)].into_iter().flatten() {
        sender.send(Ok(Frame::data(event.clone()))).await?;
    }
    Ok(())
}

async fn wait(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

impl Stats {
    fn show(&self) -> Value {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        json!({
            "requests": of(&self.requests),
            "streams": of(&self.streams),
            "tokens": of(&self.tokens),
            "cancelled": of(&self.cancelled),
            "last_cancel_us": of(&self.last_cancel_us),
        })
    }
}

fn document(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = framed("application/json", full(value.to_string()));
    *response.status_mut() = status;
    response
}

fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    document(status, &json!({"error": {"message": message}}))
}

fn framed(kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
    response
}

fn full(text: String) -> Body {
    Full::new(Bytes::from(text))
        .map_err(|never| match never {})
        .boxed()
}

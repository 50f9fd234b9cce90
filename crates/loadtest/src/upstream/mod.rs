//! A mock model server with minimal cost, so that the process in front of it is measured. `GET /stats` counts
//! requests, streams, tokens, and responses whose client disconnected before their end, with the time at
//! which the last disconnect was detected.

mod stats;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
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

use self::stats::{DisconnectGuard, Stats};
use crate::behaviour::Behaviour;
use crate::response::{Events, ResponseRoute};

const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Events queued for a reader.
const AHEAD: usize = 32;

type UpstreamBody = BoxBody<Bytes, io::Error>;

#[derive(Debug, Args)]
pub(crate) struct Upstream {
    /// Listening address; port 0 selects a free one, which is printed.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

impl Upstream {
    #[expect(clippy::print_stdout, reason = "the caller reads the address")]
    pub(crate) async fn serve(self) -> Result<()> {
        let listener = TcpListener::bind(self.listen).await?;
        println!("listening on {}", listener.local_addr()?);
        accept(listener).await
    }

    /// Runs on a separate thread with its own runtime, as if it were another process.
    pub(crate) fn aside() -> Result<SocketAddr> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        std::thread::spawn(move || {
            runtime.block_on(async { accept(TcpListener::from_std(listener)?).await })
        });
        Ok(address)
    }
}

async fn accept(listener: TcpListener) -> Result<()> {
    let stats = Arc::new(Stats::default());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        // The client may have disconnected already.
        if stream.set_nodelay(true).is_err() {
            continue;
        }
        let stats = stats.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, stats.clone()));
            // A client disconnect is part of some measurements.
            auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await
                .ok();
        });
    }
}

async fn answer(request: Request<Incoming>, stats: Arc<Stats>) -> Result<Response<UpstreamBody>, Infallible> {
    let route = match request.uri().path() {
        "/health" => return Ok(document(StatusCode::OK, &json!({"ok": true}))),
        "/stats" => return Ok(document(StatusCode::OK, &stats.show())),
        path if path.ends_with("/models") => {
            let models = json!({"object": "list", "data": [{"id": "mock", "object": "model"}]});
            return Ok(document(StatusCode::OK, &models));
        }
        path => ResponseRoute::of(path),
    };
    let Some(route) = route else {
        return Ok(refusal(StatusCode::NOT_FOUND, "no such route"));
    };
    let Ok(body) = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await else {
        return Ok(refusal(StatusCode::BAD_REQUEST, "the body is incomplete"));
    };
    let body = body.to_bytes();
    let asked = match route {
        ResponseRoute::Transcriptions => json!({"model": field(&body, "model")}),
        _ => serde_json::from_slice::<Value>(&body).unwrap_or_default(),
    };
    if !asked.is_object() {
        return Ok(refusal(StatusCode::BAD_REQUEST, "no JSON"));
    }
    let waiting = DisconnectGuard::new(stats.clone());
    stats.asked();
    let model = asked["model"].as_str().unwrap_or("mock");
    let behaviour = Behaviour::of(model);
    if asked["stream"].as_bool() == Some(true)
        && let Some(events) = route.events(model, behaviour)
    {
        stats.streams();
        return Ok(stream(events, behaviour, stats, waiting));
    }
    // A disconnect drops this future with its guard.
    wait(behaviour.first).await;
    waiting.over();
    let (kind, bytes) = route.whole(model, behaviour);
    Ok(framed(kind, full(bytes)))
}

fn stream(
    events: Events,
    behaviour: Behaviour,
    stats: Arc<Stats>,
    waiting: DisconnectGuard,
) -> Response<UpstreamBody> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        if speak(&sender, &events, behaviour, &stats).await.is_ok() {
            waiting.over();
        }
    });
    let body = StreamBody::new(ReceiverStream::new(receiver));
    framed("text/event-stream", BodyExt::boxed(body))
}

type Sender = mpsc::Sender<Result<Frame<Bytes>, io::Error>>;

/// The client has disconnected.
struct Disconnected;

/// Fails as soon as the client disconnects, not only at the next event.
async fn speak(
    sender: &Sender,
    events: &Events,
    behaviour: Behaviour,
    stats: &Stats,
) -> Result<(), Disconnected> {
    let say = async |piece| sender.send(piece).await.map_err(|_| Disconnected);
    pause(sender, behaviour.first).await?;
    for event in [Some(&events.first), events.head.as_ref()].into_iter().flatten() {
        say(Ok(Frame::data(event.clone()))).await?;
    }
    for number in 0..behaviour.tokens {
        if behaviour.dies_after.is_some_and(|last| number >= last) {
            let death = io::Error::new(
                io::ErrorKind::ConnectionReset,
                "connection reset, as specified by the model name",
            );
            return say(Err(death)).await;
        }
        if number > 0 {
            pause(sender, behaviour.gap).await?;
        }
        say(Ok(Frame::data(events.token.clone()))).await?;
        stats.said();
    }
    for event in [events.tail.as_ref(), Some(&events.last)].into_iter().flatten() {
        say(Ok(Frame::data(event.clone()))).await?;
    }
    Ok(())
}

async fn pause(sender: &Sender, time: Duration) -> Result<(), Disconnected> {
    if time.is_zero() {
        return Ok(());
    }
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(()),
        () = sender.closed() => Err(Disconnected),
    }
}

async fn wait(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

/// A field of a form, found by its name only.
fn field<'a>(form: &'a [u8], name: &str) -> Option<&'a str> {
    let head = format!("name=\"{name}\"\r\n\r\n");
    let start = memchr::memmem::find(form, head.as_bytes())? + head.len();
    let rest = form.get(start..)?;
    let end = memchr::memmem::find(rest, b"\r\n")?;
    std::str::from_utf8(rest.get(..end)?).ok()
}

fn document(status: StatusCode, value: &Value) -> Response<UpstreamBody> {
    let mut response = framed("application/json", full(Bytes::from(value.to_string())));
    *response.status_mut() = status;
    response
}

fn refusal(status: StatusCode, message: &str) -> Response<UpstreamBody> {
    document(status, &json!({"error": {"message": message}}))
}

fn framed(kind: &'static str, body: UpstreamBody) -> Response<UpstreamBody> {
    let mut response = Response::new(body);
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
    response
}

fn full(bytes: Bytes) -> UpstreamBody {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}

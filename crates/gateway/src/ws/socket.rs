//! One open WebSocket. A task per run forwards its events into one bounded queue. If the client does not
//! read, the queue fills up and the tasks wait, while the runs continue in the journal.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use engine::run::envelope;
use engine::{ReadFrom, RunMode, Subscription};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use ir::{RunId, TraceContext};
use module::Code;
use tenancy::Scope;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::message::{self, ClientMessage, Execute, refuse};
use crate::call::Call;
use crate::limits;
use crate::negotiate::{ModeSignals, RequestedMode};
use crate::response::ApiError;
use crate::resume;
use crate::route;
use crate::run_stream::failure_event;
use crate::state::Gateway;
use crate::stream_limit::{ClientStreams, StreamPermit};
use crate::streaming::OpenStream;

/// Pings that may stay unanswered.
const UNANSWERED_MAX: u32 = 2;

pub(super) struct Socket {
    gateway: Gateway,
    client: ClientStreams,
    /// Trace context of the upgrade request; a message may have its own.
    trace: Option<TraceContext>,
    /// The runs being forwarded, by client-chosen id.
    runs: HashMap<String, RunId>,
    /// Each task returns its id when its run has been sent.
    forwarders: JoinSet<String>,
}

/// Why the socket is closed.
enum CloseReason {
    /// The client closed it.
    ClientClosed,
    ProtocolError(String),
    /// The credentials are no longer valid.
    Unauthorized,
    Shutdown,
}

impl CloseReason {
    fn frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::ClientClosed => return None,
            Self::ProtocolError(why) => (close_code::PROTOCOL, Cow::from(why)),
            Self::Unauthorized => (
                close_code::POLICY,
                Cow::from("these credentials are no longer valid"),
            ),
            Self::Shutdown => (
                close_code::RESTART,
                Cow::from("the server is stopping; reconnect and resume"),
            ),
        };
        // Control frames are limited in size.
        let (reason, _) = reason.split_at(reason.floor_char_boundary(limits::CLOSE_REASON_BYTES_MAX));
        Some(CloseFrame {
            code,
            reason: reason.into(),
        })
    }
}

impl Socket {
    pub(super) fn new(gateway: Gateway, client: ClientStreams, trace: Option<TraceContext>) -> Self {
        Self {
            gateway,
            client,
            trace,
            runs: HashMap::new(),
            forwarders: JoinSet::new(),
        }
    }

    /// Runs until the client disconnects, times out or loses authorization, or the server stops.
    pub(super) async fn serve(self, socket: WebSocket) {
        let (sink, stream) = socket.split();
        let (out, queue) = mpsc::channel(limits::SOCKET_QUEUE_MAX);
        // When either ends, the other is dropped: without a writer, messages cannot be answered.
        tokio::select! {
            () = write(sink, queue) => {}
            () = self.listen(stream, out) => {}
        }
    }

    async fn listen(mut self, mut stream: SplitStream<WebSocket>, out: mpsc::Sender<Message>) {
        let beat = limits::HEARTBEAT;
        let mut heartbeat = interval_at(Instant::now() + beat, beat);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut unanswered = 0;
        let stopping = self.gateway.stopping.clone();
        let reason = loop {
            tokio::select! {
                received = stream.next() => {
                    unanswered = 0;
                    let answer = match received {
                        Some(Ok(Message::Text(text))) => match self.is_authorized().await {
                            Ok(true) => self.handle_message(&text, &out).await,
                            Ok(false) => break CloseReason::Unauthorized,
                            Err(refusal) => Some(message::error(None, refusal)),
                        },
                        Some(Ok(Message::Binary(_))) => {
                            Some(message::error(None, refuse(Code::E1001, "messages are text")))
                        }
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => None,
                        Some(Ok(Message::Close(_))) => break CloseReason::ClientClosed,
                        // Too large, not text, or not a frame: later frames cannot be decoded either.
                        Some(Err(error)) => break CloseReason::ProtocolError(error.to_string()),
                        None => return,
                    };
                    if let Some(answer) = answer
                        && out.send(Message::text(answer)).await.is_err()
                    {
                        return;
                    }
                }
                Some(ended) = self.forwarders.join_next() => {
                    if let Ok(id) = ended {
                        self.runs.remove(&id);
                    }
                }
                _ = heartbeat.tick() => {
                    unanswered += 1;
                    if unanswered > UNANSWERED_MAX {
                        return;
                    }
                    if let Ok(false) = self.is_authorized().await {
                        break CloseReason::Unauthorized;
                    }
                    // A full queue is still being written, so no ping is needed.
                    out.try_send(Message::Ping(axum::body::Bytes::new())).ok();
                }
                () = stopping.cancelled() => {
                    // The shutdown limits the time of runs; their remaining events are sent.
                    while self.forwarders.join_next().await.is_some() {}
                    break CloseReason::Shutdown;
                }
            }
        };
        self.forwarders.shutdown().await;
        out.send(Message::Close(reason.frame())).await.ok();
        // Waits until the writer has sent the close frame.
        out.closed().await;
    }

    /// Credentials are checked again for every message: keys are revoked, and tokens expire. A message is
    /// handled with the configuration of its arrival.
    async fn is_authorized(&mut self) -> Result<bool, ApiError> {
        self.gateway = self.gateway.current();
        self.gateway.auth().revalidate(&self.client.caller).await
    }

    /// Handles a message; returns the immediate reply, if any.
    async fn handle_message(&mut self, text: &str, out: &mpsc::Sender<Message>) -> Option<String> {
        let (id, outcome) = match ClientMessage::parse(text) {
            Err(invalid) => {
                return Some(message::error(invalid.id.as_deref(), invalid.refusal));
            }
            Ok(ClientMessage::Ping { id }) => return Some(message::pong(id.as_deref())),
            Ok(ClientMessage::Execute(execute)) => {
                let id = execute.id.clone();
                (id, self.execute(*execute, out).await)
            }
            Ok(ClientMessage::Resume {
                id,
                session_id,
                place,
            }) => {
                let outcome = self
                    .resume(&id, &session_id, ReadFrom::AfterChunk(place), out)
                    .await;
                (id, outcome)
            }
            Ok(ClientMessage::Cancel { id }) => {
                let outcome = self.cancel(&id).await;
                (id, outcome)
            }
        };
        outcome.err().map(|refusal| message::error(Some(&id), refusal))
    }

    async fn execute(&mut self, execute: Execute, out: &mpsc::Sender<Message>) -> Result<(), ApiError> {
        let Execute {
            id,
            module,
            mut body,
            repeat,
            trace,
        } = execute;
        self.admit(&id)?;
        body.options.trace = trace.or(self.trace);
        let call = Call {
            client: self.client.clone(),
            module: route::find(&self.gateway, &self.client.caller, &module)?,
            body,
            signals: ModeSignals {
                accept: Some(RequestedMode::Streaming),
                ..ModeSignals::default()
            },
            repeat,
        };
        let begun = call.begin(&self.gateway).await?;
        self.spawn_forwarder(&id, begun.subscription, begun.mode, begun.stream_permit, out);
        Ok(())
    }

    async fn resume(
        &mut self,
        id: &str,
        session_id: &str,
        from: ReadFrom,
        out: &mpsc::Sender<Message>,
    ) -> Result<(), ApiError> {
        self.admit(id)?;
        let message = format!("there is no session {session_id} to resume");
        let gone = || refuse(Code::E4013, &message);
        let run: RunId = session_id.parse().map_err(|_| gone())?;
        self.client.caller.require(Scope::Execute)?;
        let resumed = resume::open(&self.gateway, &self.client, run, None, from, RunMode::Stream).await;
        let resumed = resumed.map_err(|error| error.or(gone()))?;
        self.spawn_forwarder(id, resumed.subscription, RunMode::Stream, resumed.permit, out);
        Ok(())
    }

    async fn cancel(&self, id: &str) -> Result<(), ApiError> {
        let run = self.runs.get(id);
        let run = run.ok_or_else(|| refuse(Code::E4009, &format!("no run `{id}` on this socket")))?;
        let caller = &self.client.caller;
        self.gateway.limiter.check_rate(caller)?;
        self.gateway.engine().cancel(&caller.tenant, *run).await?;
        Ok(())
    }

    /// Checks the limits for one more run with this id. Each message counts as a request.
    fn admit(&mut self, id: &str) -> Result<(), ApiError> {
        // Removes runs that have ended meanwhile.
        while let Some(ended) = self.forwarders.try_join_next() {
            ended.map(|id| self.runs.remove(&id)).ok();
        }
        self.gateway.limiter.check_rate(&self.client.caller)?;
        if self.runs.contains_key(id) {
            return Err(refuse(
                Code::E1001,
                &format!("`{id}` is the id of a run in progress"),
            ));
        }
        if self.runs.len() >= limits::SOCKET_RUNS_MAX {
            let max = limits::SOCKET_RUNS_MAX;
            return Err(refuse(
                Code::E4002,
                &format!("{max} runs on this socket, the maximum"),
            ));
        }
        Ok(())
    }

    fn spawn_forwarder(
        &mut self,
        id: &str,
        subscription: Subscription,
        mode: RunMode,
        stream_permit: Option<StreamPermit>,
        out: &mpsc::Sender<Message>,
    ) {
        self.runs.insert(String::from(id), subscription.run());
        let (id, out) = (String::from(id), out.clone());
        let open = OpenStream::new(&self.gateway, stream_permit);
        self.forwarders.spawn(async move {
            match mode {
                RunMode::Stream => forward_events(&id, subscription, &open, &out).await,
                RunMode::Sync => forward_last(&id, subscription, &out).await,
            }
            id
        });
    }
}

async fn forward_events(
    id: &str,
    mut subscription: Subscription,
    open: &OpenStream,
    out: &mpsc::Sender<Message>,
) {
    loop {
        let (events, more) = match subscription.next().await {
            Ok(Some(events)) => (events, true),
            Ok(None) => return,
            Err(error) => (vec![failure_event(subscription.run(), error)], false),
        };
        for event in events {
            let text = message::event(id, &event.body);
            open.count(text.len());
            if out.send(Message::text(text)).await.is_err() {
                return;
            }
        }
        if !more {
            return;
        }
    }
}

async fn forward_last(id: &str, subscription: Subscription, out: &mpsc::Sender<Message>) {
    let text = match subscription.terminal_event().await {
        Ok(last) => message::event(id, &envelope(&last).to_string()),
        Err(error) => message::error(Some(id), ApiError::from(error)),
    };
    out.send(Message::text(text)).await.ok();
}

/// Sends queued messages, all ready ones in one write. Ends after a close frame.
async fn write(mut sink: SplitSink<WebSocket, Message>, mut queue: mpsc::Receiver<Message>) {
    let mut closing = false;
    while !closing {
        let Some(mut message) = queue.recv().await else {
            return;
        };
        loop {
            closing = matches!(message, Message::Close(_));
            // After the close handshake nothing is sent, but the close frame is still flushed.
            closing |= sink.feed(message).await.is_err();
            match queue.try_recv() {
                Ok(next) if !closing => message = next,
                _ => break,
            }
        }
        closing |= sink.flush().await.is_err();
    }
    // The close frame of the client is awaited only briefly.
    tokio::time::timeout(Duration::from_millis(100), sink.close())
        .await
        .ok();
}

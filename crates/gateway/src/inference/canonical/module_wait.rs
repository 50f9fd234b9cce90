//! The response of a module run as a stream of heartbeats with all content at the end.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use engine::port::EncodedEvent;
use futures::future::BoxFuture;
use futures::stream;
use serde_json::Value;

use crate::inference::module_model::{StartedModuleRun, envelope_of};
use crate::limits;
use crate::state::Gateway;
use crate::streaming::OpenStream;

/// The terminal event of a run.
type Last = BoxFuture<'static, Result<EncodedEvent, engine::Error>>;

/// Heartbeats, then the output of `say` for the envelope. A run that fails within the first heartbeat
/// interval determines the status; later failures are events of the stream.
pub(super) async fn stream(
    begun: StartedModuleRun,
    gateway: &Gateway,
    heartbeat: &'static [u8],
    say: impl FnOnce(&Value) -> Vec<u8> + Send + 'static,
) -> Result<Body, Value> {
    let mut last: Last = Box::pin(begun.subscription.terminal_event());
    let soon = tokio::time::timeout(limits::HEARTBEAT, &mut last).await.ok();
    let stage = match soon.map(envelope_of) {
        Some(envelope) if envelope["ok"] == true => HeartbeatStage::Done(Box::new(envelope)),
        Some(envelope) => return Err(envelope),
        None => HeartbeatStage::Waits(last),
    };
    let reader = HeartbeatBody {
        stage,
        heartbeat,
        say: Some(Box::new(say)),
        open: OpenStream::new(gateway, begun.seat),
    };
    Ok(Body::from_stream(stream::unfold(reader, next)))
}

struct HeartbeatBody {
    stage: HeartbeatStage,
    heartbeat: &'static [u8],
    say: Option<Say>,
    open: OpenStream,
}

type Say = Box<dyn FnOnce(&Value) -> Vec<u8> + Send>;

enum HeartbeatStage {
    Waits(Last),
    Done(Box<Value>),
    Ended,
}

async fn next(mut reader: HeartbeatBody) -> Option<(Result<Bytes, Infallible>, HeartbeatBody)> {
    let envelope = match std::mem::replace(&mut reader.stage, HeartbeatStage::Ended) {
        HeartbeatStage::Ended => return None,
        HeartbeatStage::Done(envelope) => *envelope,
        HeartbeatStage::Waits(mut last) => match tokio::time::timeout(limits::HEARTBEAT, &mut last).await {
            Ok(last) => envelope_of(last),
            Err(_) => {
                reader.stage = HeartbeatStage::Waits(last);
                return Some((Ok(Bytes::from_static(reader.heartbeat)), reader));
            }
        },
    };
    let say = reader.say.take()?;
    let bytes = say(&envelope);
    reader.open.count(bytes.len());
    Some((Ok(Bytes::from(bytes)), reader))
}

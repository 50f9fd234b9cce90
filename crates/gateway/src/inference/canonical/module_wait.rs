//! A module's answer to somebody who is told nothing before its end but signs of life.

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

/// The last event of a run, once it is there.
type Last = BoxFuture<'static, Result<EncodedEvent, engine::Error>>;

/// Signs of life, and at the end whatever `say` makes of the envelope. An end that comes soon still has a
/// status; a stream that has begun can only say it failed.
pub(super) async fn stream(
    begun: StartedModuleRun,
    gateway: &Gateway,
    heartbeat: &'static [u8],
    say: impl FnOnce(&Value) -> Vec<u8> + Send + 'static,
) -> Result<Body, Value> {
    let mut last: Last = Box::pin(begun.subscription.terminal_event());
    let soon = tokio::time::timeout(limits::HEARTBEAT, &mut last).await.ok();
    let stage = match soon.map(envelope_of) {
        Some(envelope) if envelope["ok"] == true => Stage::Done(Box::new(envelope)),
        Some(envelope) => return Err(envelope),
        None => Stage::Waits(last),
    };
    let reader = Reader {
        stage,
        heartbeat,
        say: Some(Box::new(say)),
        open: OpenStream::new(gateway, begun.seat),
    };
    Ok(Body::from_stream(stream::unfold(reader, next)))
}

struct Reader {
    stage: Stage,
    heartbeat: &'static [u8],
    say: Option<Say>,
    open: OpenStream,
}

type Say = Box<dyn FnOnce(&Value) -> Vec<u8> + Send>;

enum Stage {
    Waits(Last),
    Done(Box<Value>),
    Ended,
}

async fn next(mut reader: Reader) -> Option<(Result<Bytes, Infallible>, Reader)> {
    let envelope = match std::mem::replace(&mut reader.stage, Stage::Ended) {
        Stage::Ended => return None,
        Stage::Done(envelope) => *envelope,
        Stage::Waits(mut last) => match tokio::time::timeout(limits::HEARTBEAT, &mut last).await {
            Ok(last) => envelope_of(last),
            Err(_) => {
                reader.stage = Stage::Waits(last);
                return Some((Ok(Bytes::from_static(reader.heartbeat)), reader));
            }
        },
    };
    let say = reader.say.take()?;
    let bytes = say(&envelope);
    reader.open.count(bytes.len());
    Some((Ok(Bytes::from(bytes)), reader))
}

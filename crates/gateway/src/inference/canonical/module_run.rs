//! A module run in the canonical API: the last user message is the input, the response is sent in one piece
//! when the run has ended, with its envelope in the extension.

use std::pin::Pin;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use engine::port::EncodedEvent;
use ir::Event;
use ir::adaptation::Adaptation;
use ir::fold::unfold;
use serde_json::Value;

use super::envelope::{CanonicalError, ResponseContext, module_response};
use super::stream::{announce, write};
use crate::call::Begun;
use crate::framing::Framing;
use crate::headers::RUN_HEADER;
use crate::inference::module_model::{ModuleChat, envelope_of, error_of, outcome_of};
use crate::limits;
use crate::state::Gateway;
use crate::streaming::{self, FrameSource, OpenStream, Preceded};
use crate::trace;

pub(super) async fn answer(
    call: ModuleChat,
    gateway: &Gateway,
    headers: &HeaderMap,
    named: ResponseContext,
    framing: Option<Framing>,
    changes: Vec<Adaptation>,
) -> Result<Response, CanonicalError> {
    let begun = call.begin(gateway, headers, false).await;
    let begun = begun.map_err(|refusal| CanonicalError::refused(named.clone(), refusal))?;
    let run = begun.subscription.run();
    let response = match framing {
        None => {
            let envelope = envelope_of(begun.subscription.terminal_event().await);
            let answer = outcome_of(&envelope);
            let answer =
                answer.map_err(|error| CanonicalError::of_module(named.clone().with_run(run), error))?;
            module_response(named, run, answer, envelope, changes)
        }
        Some(framing) => {
            let response = stream(gateway, begun, framing, changes).await;
            let failed =
                |envelope: Value| CanonicalError::of_module(named.with_run(run), error_of(&envelope));
            let mut response = response.map_err(failed)?;
            if let Ok(run) = HeaderValue::from_str(&run.to_string()) {
                response.headers_mut().insert(RUN_HEADER, run);
            }
            response
        }
    };
    Ok(trace::write_run_header(response, trace::of(headers), run))
}

/// Heartbeats, then all content. A run that fails within the first heartbeat interval determines the status;
/// later failures are events of the stream.
async fn stream(
    gateway: &Gateway,
    begun: Begun,
    framing: Framing,
    changes: Vec<Adaptation>,
) -> Result<Response, Value> {
    let open = OpenStream::new(gateway, begun.stream_permit);
    let mut rest = AtEnd {
        last: Some(Box::pin(begun.subscription.terminal_event())),
        framing,
        changes,
    };
    let first = match tokio::time::timeout(limits::HEARTBEAT, rest.envelope()).await {
        Ok(Some(envelope)) if envelope["ok"] != true => return Err(envelope),
        Ok(envelope) => envelope
            .map(|envelope| rest.encode(&envelope))
            .unwrap_or_default(),
        Err(_) => Bytes::from_static(framing.heartbeat()),
    };
    let source = Preceded { first, rest };
    Ok(streaming::response(source, framing, limits::HEARTBEAT, open))
}

/// All content at the end of the run.
struct AtEnd<F> {
    /// The terminal event; `None` once it has been taken.
    last: Option<Pin<Box<F>>>,
    framing: Framing,
    changes: Vec<Adaptation>,
}

impl<F: Future<Output = Result<EncodedEvent, engine::Error>> + Send + 'static> AtEnd<F> {
    async fn envelope(&mut self) -> Option<Value> {
        let last = self.last.as_mut()?.await;
        self.last = None;
        Some(envelope_of(last))
    }

    fn encode(&mut self, envelope: &Value) -> Bytes {
        let mut bytes = announce(self.framing, std::mem::take(&mut self.changes));
        let events = match outcome_of(envelope) {
            Ok(response) => unfold(&response),
            Err(error) => vec![Event::Error { error }],
        };
        events
            .iter()
            .for_each(|event| write(self.framing, event, &mut bytes));
        Bytes::from(bytes)
    }
}

impl<F: Future<Output = Result<EncodedEvent, engine::Error>> + Send + 'static> FrameSource for AtEnd<F> {
    async fn next(&mut self) -> Option<Bytes> {
        let envelope = self.envelope().await?;
        Some(self.encode(&envelope))
    }
}

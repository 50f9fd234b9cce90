//! One run from its start to its last event, printed on the way as it was asked for. Ctrl-C ends the run:
//! the back-end is let go, and what there is becomes the envelope.

use std::io::Write;

use anyhow::Result;
use engine::port::{EventKind, EncodedEvent};
use engine::run;
use engine::{Engine, RunRequest, ReadFrom, RunMode, Tenant};
use module::envelope::Envelope;
use serde_json::Value;

use super::trace::Trace;
use crate::output::{Output, hinted};
use crate::human_output::LiveFields;

/// How a run ended: with its own last event, or before it began.
pub(crate) enum RunEnding {
    Event(EncodedEvent),
    Refused(Value),
}

impl RunEnding {
    pub(crate) fn envelope(&self) -> Value {
        match self {
            Self::Event(event) => run::envelope(event),
            Self::Refused(envelope) => envelope.clone(),
        }
    }

    /// A refused run has printed no chunk, so its envelope is the only line.
    pub(crate) fn print_unless_streamed(&self, output: &Output) -> Result<()> {
        if let Self::Refused(envelope) = self {
            output.line(envelope.to_string())?;
        }
        Ok(())
    }
}

/// Runs to the end, printing on the way what was asked for.
pub(crate) async fn answer(
    engine: &Engine,
    execute: RunRequest,
    output: &Output,
    mut trace: Option<&mut Trace>,
) -> Result<RunEnding> {
    let streams = execute.mode == RunMode::Stream;
    let tenant = Tenant::local();
    let run = match engine.start(&tenant, execute).await {
        Ok(run) => run,
        Err(error @ engine::Error::Input(_)) => {
            return Ok(RunEnding::Refused(Envelope::failure(error.into_body()).into_value()));
        }
        Err(error) => return Err(error.into()),
    };
    let mut subscription = engine.subscribe(&tenant, run, ReadFrom::Start).await?;
    let mut fields = LiveFields::default();
    let mut asked_to_stop = false;
    loop {
        let events = tokio::select! {
            biased;
            () = interrupted() => {
                if asked_to_stop {
                    return Err(hinted("stopped before the run had ended", "the first Ctrl-C waits for its end"));
                }
                asked_to_stop = true;
                engine.cancel(&tenant, run).await?;
                continue;
            }
            events = subscription.next() => events?,
        };
        let Some(events) = events else { break };
        for event in &events {
            if let Some(trace) = trace.as_deref_mut() {
                trace.record_event(event);
            }
            if !streams {
                continue;
            }
            if output.json {
                output.line(&*event.body)?;
            } else if event.kind == EventKind::Chunk {
                fields.show(output, &event.body)?;
            }
        }
        if streams {
            output.stdout().flush()?;
        }
        if let Some(last) = events.into_iter().find(|event| event.kind.is_terminal()) {
            fields.end(output)?;
            // Whatever is still open towards a back-end is let go before the process ends.
            engine.drain().await;
            if let Some(trace) = trace {
                trace.record_attempts(engine.trace(&tenant, run).as_deref());
            }
            return Ok(RunEnding::Event(last));
        }
    }
    Err(engine::Error::MissingTerminalEvent(run).into())
}

/// Ctrl-C. Where signals cannot be listened to, the system's own way of ending a process stays.
pub(crate) async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

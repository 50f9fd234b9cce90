//! Executes one run and prints its events in the requested form. Ctrl-C cancels the run: the back-end call is
//! cancelled, and the envelope contains the partial answer.

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use engine::port::{EncodedEvent, EventKind};
use engine::run::{self, ProgressMeter};
use engine::{Engine, RunMode, RunRequest, StartedRun, Tenant};
use module::envelope::Envelope;
use serde_json::Value;

use super::progress::ProgressLine;
use super::trace::Trace;
use crate::human_output::LiveFields;
use crate::output::{Output, hinted};

/// How a run ended: with its terminal event, or with a refused input before the start.
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

    /// Prints the envelope of a refused run, which has printed no chunk.
    pub(crate) fn print_unless_streamed(&self, output: &Output) -> Result<()> {
        if let Self::Refused(envelope) = self {
            output.line(envelope.to_string())?;
        }
        Ok(())
    }
}

/// Executes the run and prints its events in the requested form.
pub(crate) async fn answer(
    engine: &Engine,
    mut execute: RunRequest,
    output: &Output,
    mut trace: Option<&mut Trace>,
) -> Result<RunEnding> {
    let streams = execute.mode == RunMode::Stream;
    let meter = Arc::new(ProgressMeter::default());
    execute.admission.meter = (!streams).then(|| meter.clone());
    let progress = ProgressLine::new(meter, output);
    let tenant = Tenant::local();
    let StartedRun {
        id: run,
        mut subscription,
        ..
    } = match engine.start(&tenant, execute).await {
        Ok(started) => started,
        Err(error @ engine::Error::Input(_)) => {
            return Ok(RunEnding::Refused(
                Envelope::failure(error.into_body()).into_value(),
            ));
        }
        Err(error) => return Err(error.into()),
    };
    let mut fields = LiveFields::default();
    let mut asked_to_stop = false;
    loop {
        let events = tokio::select! {
            biased;
            () = interrupted() => {
                if asked_to_stop {
                    return Err(hinted("stopped before the run ended", "the first Ctrl-C cancels the run and waits for its end"));
                }
                asked_to_stop = true;
                engine.cancel(&tenant, run).await?;
                continue;
            }
            events = subscription.next() => events?,
            () = progress.draw(), if !streams => continue,
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
            // Waits until open back-end calls are closed before the process ends.
            engine.drain().await;
            if let Some(trace) = trace {
                trace.record_attempts(engine.trace(&tenant, run).as_deref());
            }
            return Ok(RunEnding::Event(last));
        }
    }
    Err(engine::Error::MissingTerminalEvent(run).into())
}

/// Waits for Ctrl-C. If the signal handler cannot be installed, the default action of the system applies.
pub(crate) async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

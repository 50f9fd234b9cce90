//! One step as a run: the same machine and task as any other run, driven in place, so that dropping the
//! future cancels it. It is not visible to clients, and only its terminal event is stored.

use std::sync::Arc;

use ir::RunId;
use module::Module;
use module::envelope::Envelope;
use module::lower::admit_input;
use serde_json::{Map, Value};

use super::CompositionSpec;
use crate::launch::{Launcher, RunIo, RunSpec};
use crate::run::{
    AttemptRecord, OnDisconnect, RunBroadcast, RunMode, RunOptions, RunSink, StepEnd, StoredCommand, envelope,
};

/// Result of the run of a step.
#[derive(Clone, Debug)]
pub(super) struct StepRun {
    pub(super) envelope: Map<String, Value>,
    /// As in `_usage`; null if unknown.
    pub(super) usage: Value,
    pub(super) attempts: Vec<AttemptRecord>,
}

pub(super) async fn run(
    launcher: &Launcher,
    job: &CompositionSpec,
    module: Arc<Module>,
    input: Map<String, Value>,
) -> StepRun {
    let check = {
        let (module, input) = (module.clone(), Value::Object(input.clone()));
        move || admit_input(&module, &input)
    };
    if let Err(error) = launcher.runs.schema_threads.check(check).await {
        return StepRun {
            envelope: object(Envelope::failure(*error).into_value()),
            usage: Value::Null,
            attempts: Vec::new(),
        };
    }
    let Launcher { runs, .. } = launcher;
    let composed = &job.run;
    let spec = RunSpec {
        id: RunId::from_parts(runs.clock.now_ms(), runs.clock.random()),
        tenant: composed.tenant.clone(),
        module,
        command: StoredCommand {
            input,
            mode: RunMode::Sync,
            // The composed run has a time limit that includes this one.
            options: RunOptions {
                on_disconnect: OnDisconnect::Cancel,
                timeout_ms: None,
                ..composed.command.options.clone()
            },
            models: composed.command.models.clone(),
            resumable: false,
        },
        warnings: Vec::new(),
        recovered: None,
    };
    let io = RunIo {
        live: RunBroadcast::new(composed.tenant.clone(), 0),
        offset: 0,
        sink: RunSink::Step(StepEnd::default()),
        queue: None,
        kept: None,
    };
    let reader = io.live.clone().add_reader();
    // Media of a step is inspected like that of any run.
    let ended = match launcher.clone().task(spec, io).await {
        Some(task) => task.drive().await,
        None => RunSink::Step(StepEnd::default()),
    };
    drop(reader);
    let StepEnd { last, attempts } = match ended {
        RunSink::Step(end) => end,
        RunSink::Journal(_) => StepEnd::default(),
    };
    let mut envelope = last.map_or_else(Map::new, |last| object(envelope(&last)));
    StepRun {
        usage: envelope.shift_remove("_usage").unwrap_or_default(),
        envelope,
        attempts,
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

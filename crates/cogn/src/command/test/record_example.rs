//! Records the golden test of a new module with its example as the answer, and checks that the test passes.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use engine::Modules;
use serde_json::{Value, json};

use super::case::{Case, CaseSource, Status};
use crate::command_engine::CommandEngine;
use crate::wiring;

/// `folder` contains the module; its first test has an `$example`.
pub(crate) fn record_example(folder: &Path) -> Result<()> {
    let module = wiring::load_module(folder)?;
    let pair = module.tests.first().cloned().context("the module has no test")?;
    let expected = fs::read(folder.join(&pair.expected))?;
    let expected: Value = serde_json::from_slice(&expected)?;
    let script = json!([{ "reply": expected["$example"].to_string() }]);
    let asking = CommandEngine::scripted(&script.to_string())?.recording(Vec::new());
    let recording = folder.join(format!("tests/recordings/{}.yaml", pair.name));
    let case = Case {
        module: Arc::new(module),
        modules: Modules::default(),
        folder: folder.to_path_buf(),
        pair,
        source: CaseSource::Live(asking, recording),
        model: None,
    };
    let outcome = wiring::current_thread_runtime()?.block_on(case.run());
    match outcome.status {
        Status::Passed => Ok(()),
        other => bail!("the example of the module does not pass its test: {other:?}"),
    }
}

//! Cancellation latency: every endpoint is disconnected before its response is complete, and the upstream
//! reports when it detected that.

use std::path::Path;

use anyhow::{Context, Result};

use super::row::Row;
use super::setup::{Bench, Folder, KEY, bound, measured, number};

/// No output for a minute, then endless tokens: for a disconnect before the first token.
const SLOW_MODEL: &str = "mock-env-t100000-f60000000-i2000";
/// Endless tokens.
const STEADY_MODEL: &str = "mock-env-t100000-i2000";
/// All in microseconds.
const GRACE: f64 = 500_000.0;
const BOUND: f64 = 50_000.0;

/// Endpoints by their name in `loadtest`, with their path.
const WAYS: [(&str, &str); 18] = [
    ("chat", "/v1/chat/completions"),
    ("chat-stream", "/v1/chat/completions"),
    ("chat-early", "/v1/chat/completions"),
    ("responses", "/v1/responses"),
    ("responses-stream", "/v1/responses"),
    ("messages", "/v1/messages"),
    ("messages-stream", "/v1/messages"),
    ("count-tokens", "/v1/messages/count_tokens"),
    ("embeddings", "/v1/embeddings"),
    ("images", "/v1/images/generations"),
    ("transcriptions", "/v1/audio/transcriptions"),
    ("speech", "/v1/audio/speech"),
    ("module", "/v1/modules/measured/execute"),
    ("module-stream", "/v1/modules/measured/execute"),
    ("canonical", "/v1/canonical"),
    ("canonical-stream", "/v1/canonical"),
    ("canonical-embeddings", "/v1/canonical"),
    ("mcp", "/mcp"),
];

pub(crate) fn measure(cogn: &Path) -> Result<Vec<Row>> {
    measured(cogn, rows)
}

fn rows(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let upstream = bench.upstream.address();
    // A module request has no model, so the default model is the slow one.
    let openai = |model: &str| {
        format!(
            "[[backends]]\nname = \"upstream\"\nkind = \"openai\"\nbase_url = \"http://{upstream}/v1\"\n\
             default_model = \"{model}\"\noperations = [\"chat_completions\", \"embeddings\", \
             \"image_generation\", \"speech_to_text\", \"text_to_speech\"]\n"
        )
    };
    let anthropic = format!(
        "[[backends]]\nname = \"upstream\"\nkind = \"anthropic\"\nbase_url = \"http://{upstream}\"\n"
    );
    let mut rows = Vec::new();
    for (endpoint, path) in WAYS {
        let model = match endpoint.ends_with("-stream") {
            true => STEADY_MODEL,
            false => SLOW_MODEL,
        };
        // Messages are sent to a back-end of the same dialect: a passthrough.
        let configuration = match path {
            "/v1/messages" | "/v1/messages/count_tokens" => anthropic.clone(),
            _ => openai(model),
        };
        // A tool call has no model; the tool name is used.
        let model = match endpoint {
            "mcp" => "measured",
            _ => model,
        };
        let folder = Folder::with(&configuration)?;
        let server = folder.serve(bench.cogn)?;
        let leave = ["--mode", "disconnect", "--endpoint", endpoint, "--model", model];
        let more = ["--upstream", upstream, "--seconds", "2"];
        // Only endpoints of vendors' clients get a vendor's key.
        let key: &[&str] = match path.starts_with("/v1/modules") || ["/v1/canonical", "/mcp"].contains(&path)
        {
            true => &[],
            false => &["--key", KEY],
        };
        let figures = bench
            .load(&server, path, &[&leave[..], &more, key].concat())
            .context(endpoint)?;
        let name = format!("{endpoint}: upstream cancellation latency, maximum");
        rows.push(bound(&name, number(&figures, "/whole_us/max")?, "us", BOUND));
    }
    rows.push(kept(bench, &openai(STEADY_MODEL))?);
    Ok(rows)
}

/// A resumable stream continues for the grace period, and no longer.
fn kept(bench: &Bench<'_>, configuration: &str) -> Result<Row> {
    let folder = Folder::with(&format!("{configuration}[server]\nresume_grace_ms = 500\n"))?;
    let server = folder.serve(bench.cogn)?;
    let leave = [
        "--mode",
        "disconnect",
        "--endpoint",
        "module-resumable",
        "--model",
        STEADY_MODEL,
    ];
    let more = ["--upstream", bench.upstream.address(), "--seconds", "4"];
    let path = "/v1/modules/measured/execute";
    let figures = bench.load(&server, path, &[&leave[..], &more].concat())?;
    let beyond = number(&figures, "/whole_us/max")? - GRACE;
    let name = "module-resumable: upstream cancellation after the grace period, maximum";
    Ok(bound(name, beyond, "us", BOUND))
}

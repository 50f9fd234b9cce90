//! `module.yaml` of a new module, with explanatory comments.

use serde_json::Value;

use super::Blueprint;
use crate::limits;
use crate::manifest::{EnumStrategy, Modality, ResponseMode, Strictness, Tier};
use crate::migrate::yaml_line;

pub(super) fn write(blueprint: &Blueprint) -> String {
    let mut text = identity(blueprint);
    text.push_str(&conduct());
    if blueprint.is_v25() {
        text.push_str(&response(blueprint));
    }
    text.push_str(&contract(blueprint));
    text
}

fn identity(blueprint: &Blueprint) -> String {
    let name = &blueprint.name;
    let strict = if blueprint.is_v25() { "--v25" } else { "--v22" };
    let responsibility = yaml_line("responsibility", &Value::from(blueprint.responsibility.as_str()));
    let tier = blueprint.tier.as_str();
    let strictness = match blueprint.tier.strictness() {
        Strictness::High => "high",
        Strictness::Medium => "medium",
        Strictness::Low => "low",
    };
    format!(
        "# The manifest: purpose, permissions and contract of the module.\n\
         # `cogn validate {name} {strict}` checks it.\n\
         name: {name}\n\
         version: 0.1.0\n\
         # The purpose of the module, in one sentence.\n\
         {responsibility}\n\
         # How the answer is used:\n\
         #   exec         without review; requires confidence 0.9 and low risk\n\
         #   decision     it supports a person's decision\n\
         #   exploration  it is a suggestion\n\
         tier: {tier}\n\
         # How strictly answers are validated against the schema: high, medium or low.\n\
         schema_strictness: {strictness}\n\
         \n\
         # What the module must not do. This list is part of the prompt.\n\
         excludes:\n  \
         - inventing facts that the input does not contain\n\
         \n"
    )
}

fn conduct() -> String {
    String::from(
        "# Side effects of the module: allow or deny.\n\
         policies:\n  \
         network: deny\n  \
         filesystem_write: deny\n  \
         side_effects: deny\n  \
         code_execution: deny\n\
         \n\
         tools:\n  \
         policy: deny_by_default\n  \
         allowed: []\n\
         \n",
    )
}

fn response(blueprint: &Blueprint) -> String {
    let mode = match blueprint.tier.response_mode() {
        ResponseMode::Sync => "sync",
        ResponseMode::Streaming => "streaming",
        ResponseMode::Both => "both",
    };
    let mut kinds = vec!["text"];
    let mut limits = String::new();
    for kind in blueprint.media() {
        let (name, lines) = match kind {
            Modality::Image => ("image", "    max_images: 10\n    max_image_size_mb: 20\n"),
            Modality::Audio => (
                "audio",
                "    max_audio_size_mb: 25\n    max_audio_duration_seconds: 600\n",
            ),
            Modality::Video => (
                "video",
                "    max_video_size_mb: 100\n    max_video_duration_seconds: 300\n",
            ),
            Modality::Document => ("document", ""),
            Modality::Text => continue,
        };
        kinds.push(name);
        limits.push_str(lines);
    }
    let constraints = if limits.is_empty() {
        String::new()
    } else {
        format!("  constraints:\n{limits}")
    };
    format!(
        "# Response mode: sync (one complete answer), streaming (field by field) or both (the caller chooses).\n\
         response:\n  \
         mode: {mode}\n  \
         chunk_type: delta\n\
         \n\
         # Accepted inputs and outputs: text, image, audio, video; document as input only.\n\
         modalities:\n  \
         input: [{}]\n  \
         output: [text]\n\
         {constraints}\n",
        kinds.join(", ")
    )
}

fn contract(blueprint: &Blueprint) -> String {
    let overflow = blueprint.tier.overflow();
    let strategy = match blueprint.tier.enums().strategy {
        EnumStrategy::Strict => "strict",
        EnumStrategy::Extensible => "extensible",
    };
    let overflow = if blueprint.tier == Tier::Exec {
        String::from("overflow:\n  enabled: false\n")
    } else {
        format!(
            "overflow:\n  enabled: true\n  recoverable: true\n  max_items: {}\n  require_suggested_mapping: true\n",
            overflow.max_items.min(limits::INSIGHTS_MAX)
        )
    };
    format!(
        "# Observations without a field in the schema are added to data.extensions.insights.\n\
         {overflow}\n\
         # strict: enums are closed. extensible: {{custom, reason}} is allowed where the schema allows it.\n\
         enums:\n  \
         strategy: {strategy}\n\
         \n\
         # On failure: ok is false, error has the reason, partial_data has the partial result.\n\
         failure:\n  \
         contract: error_union\n  \
         partial_allowed: true\n  \
         must_return_error_schema: true\n\
         \n\
         runtime_requirements:\n  \
         structured_output: true\n\
         \n\
         # The model states the risk itself; max_changes_risk and max_issues_risk derive it from the data.\n\
         meta:\n  \
         risk_rule: explicit\n\
         \n\
         io:\n  \
         input: ./schema.json#/input\n  \
         data: ./schema.json#/data\n  \
         meta: ./schema.json#/meta\n  \
         error: ./schema.json#/error\n\
         \n\
         # Golden tests: an input and the expected answer.\n\
         tests:\n  \
         - tests/example.input.json -> tests/example.expected.json\n"
    )
}

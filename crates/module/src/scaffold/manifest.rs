//! `module.yaml` of a new module, with comments that teach.

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
        "# The manifest: what the module is, what it may do, where its contract stands.\n\
         # `cogn validate {name} {strict}` checks it.\n\
         name: {name}\n\
         version: 0.1.0\n\
         # What the module is for, in one sentence.\n\
         {responsibility}\n\
         # Who acts on the answer:\n\
         #   exec         nobody looks at it first, so it must be sure (confidence 0.9) and harmless\n\
         #   decision     a person judges with its help\n\
         #   exploration  it only gives ideas\n\
         tier: {tier}\n\
         # How closely answers are held to the schema: high, medium or low.\n\
         schema_strictness: {strictness}\n\
         \n\
         # What the module must not do. The model is told.\n\
         excludes:\n  \
         - inventing facts that the input does not contain\n\
         \n"
    )
}

fn conduct() -> String {
    String::from(
        "# What it may do besides answering: allow or deny.\n\
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
        "# How it answers: sync (all at once), streaming (field by field) or both, as the caller likes.\n\
         response:\n  \
         mode: {mode}\n  \
         chunk_type: delta\n\
         \n\
         # What goes in and what comes out: text, image, audio, video; and document on the way in.\n\
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
        "# Observations that the schema has no field for go to data.extensions.insights.\n\
         {overflow}\n\
         # strict: enums are closed. extensible: {{custom, reason}} is allowed where the schema says so.\n\
         enums:\n  \
         strategy: {strategy}\n\
         \n\
         # A failure is an answer too: ok is false, error says why, partial_data keeps what there is.\n\
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
         # Golden tests: an input and what is expected of the answer.\n\
         tests:\n  \
         - tests/example.input.json -> tests/example.expected.json\n"
    )
}

//! What this server can do. Only what is proven is declared: the level is what the embedded vectors give
//! on this very build, and transports and media are those that tests go through.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use axum::extract::State;
use axum::response::Response;
use engine::Fleet;
use ir::operation::Feature;
use module::conformance;
use module::manifest::MediaConstraints;
use serde_json::{Value, json};

use crate::limits;
use crate::endpoint::{Endpoint, any_of_type, object, text};
use crate::response;
use crate::state::Gateway;

pub(super) fn operations() -> Vec<Endpoint> {
    let capabilities = object(&[
        ("streaming", json!({"type": "boolean"})),
        (
            "multimodal",
            any_of_type(
                "object",
                "Kinds of media, in and out, that a back-end here takes.",
            ),
        ),
        (
            "max_media_size_mb",
            any_of_type("number", "The largest of `media_size_mb`."),
        ),
        (
            "media_size_mb",
            any_of_type(
                "object",
                "Usual largest size of each kind; a module may say otherwise.",
            ),
        ),
        (
            "supported_transports",
            json!({"type": "array", "items": {"type": "string"}}),
        ),
    ]);
    vec![
        Endpoint::get("/v1/capabilities", "capabilities", capabilities_of)
            .summary("What this server can do, as far as it is proven.")
            .returns(object(&[
                ("runtime", text()),
                ("version", text()),
                ("capabilities", capabilities),
            ])),
    ]
}

async fn capabilities_of(State(gateway): State<Gateway>) -> Response {
    let settings = gateway.settings();
    let sizes = media_sizes(&gateway.engine.fleet());
    let data = json!({
        "runtime": "cogn",
        "version": env!("CARGO_PKG_VERSION"),
        "spec_versions": ["2.5", "2.2", "2.1", "1", "0"],
        "capabilities": {
            "streaming": true,
            "multimodal": {"input": sizes.keys().collect::<Vec<_>>(), "output": []},
            "max_media_size_mb": sizes.values().copied().fold(0.0, f64::max),
            "media_size_mb": sizes,
            "supported_transports": ["sse", "websocket", "ndjson"],
            "vendor_dialects": ["openai-chat", "openai-responses", "anthropic"],
            "recovery": {"headers": true, "body": true, "last_event_id": true},
            "progress": true,
            "max_body_bytes": limits::BODY_BYTES_MAX,
            "max_streams_per_client": settings.streams_per_client_max,
        },
        "conformance": conformance_of(),
        "rationale": "vectors_level is the highest level whose vectors this build passes, with all below.",
    });
    response::resource("what this server can do", data)
}

/// The kinds of media that somebody here takes, with the size up to which a module takes them that says
/// nothing else. What no back-end takes is not declared, whatever this server could do with it.
fn media_sizes(fleet: &Fleet) -> BTreeMap<&'static str, f64> {
    let usual = MediaConstraints::default();
    let kinds = [
        ("image", Feature::ImageInput, usual.max_image_size_mb),
        ("audio", Feature::AudioInput, usual.max_audio_size_mb),
        ("video", Feature::VideoInput, usual.max_video_size_mb),
        ("document", Feature::DocumentInput, usual.max_document_size_mb),
    ];
    let taken = |feature: &Feature| {
        let mut usable = fleet.candidates().iter().filter(|one| one.unavailable.is_none());
        usable.any(|one| one.features.contains(feature))
    };
    let declared = kinds.into_iter().filter(|(_, feature, _)| taken(feature));
    declared.map(|(kind, _, size)| (kind, size)).collect()
}

/// The vectors are in the binary and so is what they judge: once is enough.
fn conformance_of() -> &'static Value {
    static PROVEN: OnceLock<Value> = OnceLock::new();
    PROVEN.get_or_init(|| {
        let report = conformance::run(conformance::embedded(), 4);
        json!({
            "vectors_level": report.declares_level,
            "vectors": report.vectors.len(),
        })
    })
}

//! Capabilities of this server. Only verified ones are declared: the level is the result of the embedded
//! vectors on this build, and transports and media are covered by tests.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use axum::response::Response;
use engine::Fleet;
use ir::operation::{Feature, Operation};
use module::manifest::MediaConstraints;
use module::{Format, conformance};
use serde_json::{Value, json};

use crate::endpoint::{Endpoint, any_of_type, object, text};
use crate::framing::Framing;
use crate::limits;
use crate::response;
use crate::state::Gateway;

pub(super) fn operations() -> Vec<Endpoint> {
    let capabilities = object(&[
        ("streaming", json!({"type": "boolean"})),
        (
            "multimodal",
            any_of_type(
                "object",
                "Kinds of media that available back-ends accept as input and produce as output.",
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
                "Default size limit of each kind; a module may override it.",
            ),
        ),
        (
            "supported_transports",
            json!({"type": "array", "items": {"type": "string"}}),
        ),
    ]);
    vec![
        Endpoint::get("/v1/capabilities", "capabilities", capabilities_of)
            .summary("Returns the verified capabilities of this server.")
            .returns(object(&[
                ("runtime", text()),
                ("version", text()),
                ("capabilities", capabilities),
            ])),
    ]
}

async fn capabilities_of(gateway: Gateway) -> Response {
    let settings = gateway.settings();
    let sizes = media_sizes(gateway.engine().fleet());
    let transports: Vec<_> = Framing::ALL
        .map(Framing::name)
        .into_iter()
        .chain(["websocket"])
        .collect();
    let data = json!({
        "runtime": "cogn",
        "version": env!("CARGO_PKG_VERSION"),
        "spec_versions": spec_versions(),
        "capabilities": {
            "streaming": true,
            "multimodal": {"input": sizes.keys().collect::<Vec<_>>(), "output": produced(gateway.engine().fleet())},
            "max_media_size_mb": sizes.values().copied().fold(0.0, f64::max),
            "media_size_mb": sizes,
            "supported_transports": transports,
            "vendor_dialects": ["openai-chat", "openai-responses", "anthropic"],
            "max_body_bytes": limits::BODY_BYTES_MAX,
            "max_streams_per_client": settings.streams_per_client_max,
        },
        "conformance": conformance_of(),
        "rationale": "vectors_level is the highest level at which this build passes all vectors, including lower levels.",
    });
    response::resource("capabilities of this server", data)
}

/// The kinds of media that an available back-end accepts, with the default size limit of modules. Kinds
/// without such a back-end are not declared.
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

/// The kinds of media that an available back-end produces.
fn produced(fleet: &Fleet) -> Vec<&'static str> {
    let kinds = [
        ("audio", Operation::TextToSpeech),
        ("image", Operation::ImageGeneration),
    ];
    let offers = |operation: &Operation| {
        let mut usable = fleet.candidates().iter().filter(|one| one.unavailable.is_none());
        usable.any(|one| one.operations.contains(operation))
    };
    let declared = kinds.into_iter().filter(|(_, operation)| offers(operation));
    declared.map(|(kind, _)| kind).collect()
}

/// The versions of the format that modules may have, newest first.
fn spec_versions() -> Vec<&'static str> {
    let versions = Format::ALL.iter().rev().map(|format| format.as_str());
    versions.map(|version| version.trim_start_matches('v')).collect()
}

/// Computed once: vectors and implementation are both in the binary.
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

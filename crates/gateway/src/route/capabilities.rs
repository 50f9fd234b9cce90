//! What this server can do. Only what is proven is declared: the level is what the embedded vectors give
//! on this very build, and transports and media are those that tests go through.

use std::sync::OnceLock;

use axum::extract::State;
use axum::response::Response;
use module::conformance;
use serde_json::{Value, json};

use crate::limits;
use crate::operation::{Operation, any_of_type, object, text};
use crate::reply;
use crate::state::Gateway;

pub(super) fn operations() -> Vec<Operation> {
    let capabilities = object(&[
        ("streaming", json!({"type": "boolean"})),
        ("multimodal", any_of_type("object", "Kinds of media, in and out.")),
        (
            "supported_transports",
            json!({"type": "array", "items": {"type": "string"}}),
        ),
    ]);
    vec![
        Operation::get("/v1/capabilities", "capabilities", capabilities_of)
            .says("What this server can do, as far as it is proven.")
            .gives(object(&[
                ("runtime", text()),
                ("version", text()),
                ("capabilities", capabilities),
            ])),
    ]
}

async fn capabilities_of(State(gateway): State<Gateway>) -> Response {
    let settings = gateway.settings();
    let data = json!({
        "runtime": "cogn",
        "version": env!("CARGO_PKG_VERSION"),
        "spec_versions": ["2.5", "2.2", "2.1", "1", "0"],
        "capabilities": {
            "streaming": true,
            "multimodal": {"input": [], "output": []},
            "supported_transports": ["sse", "websocket", "ndjson"],
            "recovery": {"headers": true, "body": true, "last_event_id": true},
            "max_body_bytes": limits::BODY_BYTES_MAX,
            "max_streams_per_client": settings.streams_per_client_max,
        },
        "conformance": conformance_of(),
        "rationale": "vectors_level is the highest level whose vectors this build passes, with all below.",
    });
    reply::resource("what this server can do", data)
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

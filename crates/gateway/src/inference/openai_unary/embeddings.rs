//! Embeddings in the OpenAI API.

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use ir::{Component, Feature, Ledger, Payload, Request, ResponsePayload};
use serde_json::{Value, json};
use wire::{embedding_vector, openai_embeddings};

use super::{UnaryCall, with_metadata, wrong_payload};
use crate::endpoint::{Endpoint, any_of_type, object, text};
use crate::inference::error::VendorError;
use crate::inference::vendor::Vendor;

pub(super) fn operations() -> Vec<Endpoint> {
    let embed = Endpoint::post("/v1/embeddings", "create_embeddings", embed)
        .summary("Creates embeddings, in the OpenAI format.")
        .request_body(json!({
            "type": "object",
            "properties": {
                "model": {"type": "string"},
                "input": {},
                "dimensions": {"type": "integer"},
                "encoding_format": {"type": "string"},
            },
            "required": ["input"],
        }))
        .vendor(Vendor::OpenAi)
        .returns_json(answer());
    vec![embed]
}

fn answer() -> Value {
    object(&[
        ("object", json!({"const": "list"})),
        ("data", any_of_type("array", "One vector per text.")),
        ("model", text()),
        ("usage", any_of_type("object", "Unknown values are null.")),
    ])
}

async fn embed(asking: UnaryCall, body: Body) -> Result<Response, VendorError> {
    let body = asking.read(body).await?;
    let payload = openai_embeddings::decode_request(body)?;
    let form = payload.encoding_format.clone();
    let tokens = openai_embeddings::has_tokens(&payload);
    if payload.input.is_empty() && !tokens {
        return Err(VendorError::invalid("`input` is empty"));
    }
    let model = payload.model.clone();
    let mut request = Request::new("", Payload::Embeddings(payload));
    if tokens {
        // Token ids are specific to one vendor: only its back-ends can decode them.
        let features = &mut request.requirements.required_features;
        features.insert(Feature::TokenInput);
    }
    let mut relayed = asking.execute_request(request).await?;
    let ResponsePayload::Embeddings(response) = &mut relayed.answer.payload else {
        return Err(wrong_payload());
    };
    for one in &mut response.embeddings {
        one.vector = embedding_vector::convert(&one.vector, form.as_deref())?;
    }
    if response.model.is_none() {
        response.model = relayed.backend.model.clone().or(model);
    }
    let mut ledger = Ledger::new(Component::Adapter);
    let mut body = openai_embeddings::encode_response(response, &mut ledger);
    // Clients require the fields; unknown counts are null.
    if body.get("usage").is_none() {
        body["usage"] = json!({"prompt_tokens": null, "total_tokens": null});
    }
    Ok(with_metadata(Json(body).into_response(), &relayed))
}

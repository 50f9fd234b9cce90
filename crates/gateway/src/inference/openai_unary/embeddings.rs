//! Vectors for texts.

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use ir::{Feature, Ledger, Component, Payload, Request, ResponsePayload};
use serde_json::{Value, json};
use wire::{openai_embeddings, embedding_vector};

use super::{UnaryCall, with_metadata, wrong_payload};
use crate::inference::error::VendorError;
use crate::inference::vendor::Vendor;
use crate::endpoint::{Endpoint, any_of_type, object, text};

pub(super) fn operations() -> Vec<Endpoint> {
    let embed = Endpoint::post("/v1/embeddings", "create_embeddings", embed)
        .summary("Vectors for texts, as OpenAI's clients ask for them.")
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
        ("data", any_of_type("array", "One vector for each text.")),
        ("model", text()),
        ("usage", any_of_type("object", "What is not known is null.")),
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
        // They are numbers of one vendor's own: only its servers can read them.
        let features = &mut request.requirements.required_features;
        features.insert(Feature::TokenInput);
    }
    let mut asked = asking.execute_request(request).await?;
    let ResponsePayload::Embeddings(response) = &mut asked.answer.payload else {
        return Err(wrong_payload());
    };
    for one in &mut response.embeddings {
        one.vector = embedding_vector::convert(&one.vector, form.as_deref())?;
    }
    if response.model.is_none() {
        response.model = asked.backend.model.clone().or(model);
    }
    let mut ledger = Ledger::new(Component::Adapter);
    let mut body = openai_embeddings::encode_response(response, &mut ledger);
    // Clients read the counts without asking whether they are there; unknown stays unknown.
    if body.get("usage").is_none() {
        body["usage"] = json!({"prompt_tokens": null, "total_tokens": null});
    }
    Ok(with_metadata(Json(body).into_response(), &asked))
}

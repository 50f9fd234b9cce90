//! Image generation and editing in the OpenAI API.

use axum::body::Body;
use axum::response::Response;
use ir::envelope::ImageRequest;
use ir::{Component, Ledger, MediaKind, Payload, ResponsePayload};
use serde_json::{Value, json};
use wire::openai_images;

use super::{UnaryCall, with_metadata, wrong_payload};
use crate::endpoint::{Endpoint, any_of_type, object};
use crate::inference::error::VendorError;
use crate::inference::holed;
use crate::inference::image_output::in_form;
use crate::inference::vendor::Vendor;

const IMAGE: &[&str] = &["image", "image[]"];
const MASK: &[&str] = &["mask"];
const FILES: &[&str] = &["image", "image[]", "mask"];

pub(super) fn operations() -> Vec<Endpoint> {
    let properties = json!({
        "model": {"type": "string"},
        "prompt": {"type": "string"},
        "n": {"type": "integer"},
        "size": {"type": "string"},
        "quality": {"type": "string"},
        "style": {"type": "string"},
        "response_format": {"type": "string"},
    });
    let generate = Endpoint::post("/v1/images/generations", "create_image", generate)
        .summary("Generates images from a text, in the OpenAI format.")
        .request_body(json!({"type": "object", "properties": properties, "required": ["prompt"]}))
        .vendor(Vendor::OpenAi)
        .returns_json(answer());
    let edit = Endpoint::post("/v1/images/edits", "edit_image", edit)
        .summary("Edits an image by a text, with or without a mask; multipart form.")
        .multipart_body(json!({
            "type": "object",
            "properties": {
                "image": {"type": "string", "contentMediaType": "application/octet-stream"},
                "mask": {"type": "string", "contentMediaType": "application/octet-stream"},
                "prompt": {"type": "string"},
                "model": {"type": "string"},
                "n": {"type": "integer"},
                "size": {"type": "string"},
                "response_format": {"type": "string"},
            },
            "required": ["image", "prompt"],
        }))
        .vendor(Vendor::OpenAi)
        .returns_json(answer());
    vec![generate, edit]
}

fn answer() -> Value {
    object(&[
        ("created", any_of_type("integer", "Unix time in seconds.")),
        ("data", any_of_type("array", "Images, as `b64_json` or `url`.")),
    ])
}

async fn generate(asking: UnaryCall, body: Body) -> Result<Response, VendorError> {
    let body = asking.read(body).await?;
    let payload = openai_images::decode_request(body)?;
    execute(&asking, payload).await
}

async fn edit(asking: UnaryCall, body: Body) -> Result<Response, VendorError> {
    let mut form = asking.form(body, FILES).await?;
    for key in ["n", "output_compression", "partial_images"] {
        form.make_number(key)?;
    }
    let (mut images, mut masks) = (form.files(IMAGE), form.files(MASK));
    let (image, mask) = (images.pop(), masks.pop());
    if !images.is_empty() || !masks.is_empty() {
        let message = "only one image and one mask are supported: not all back-ends accept more";
        return Err(VendorError::invalid(message));
    }
    let image = image.ok_or_else(|| VendorError::invalid("`image` is missing"))?;
    let mut payload = openai_images::decode_request(Value::Object(std::mem::take(&mut form.fields)))?;
    payload.image = Some(image.with_kind(MediaKind::Image));
    payload.mask = mask.map(|mask| mask.with_kind(MediaKind::Image));
    // The form holds its permit until the response is received.
    let answer = execute(&asking, payload).await;
    drop(form);
    answer
}

async fn execute(asking: &UnaryCall, payload: ImageRequest) -> Result<Response, VendorError> {
    let streams = payload.ext.value(ir::Dialect::OpenaiImages, "stream") == Some(&Value::from(true));
    if streams {
        return Err(VendorError::invalid(
            "image streaming is not supported: omit `stream`",
        ));
    }
    let form = payload.response_format.clone();
    let mut relayed = asking.execute(Payload::Image(Box::new(payload))).await?;
    let ResponsePayload::Image(response) = &mut relayed.answer.payload else {
        return Err(wrong_payload());
    };
    if response.created.is_none() {
        response.created = Some(asking.gateway.engine().clock().now_ms() / 1_000);
    }
    let holes = in_form(&asking.gateway, response, form.as_deref()).await?;
    let mut ledger = Ledger::new(Component::Adapter);
    let body = openai_images::encode_response(response, &mut ledger)?;
    Ok(with_metadata(holed::json(&body, &holes), &relayed))
}

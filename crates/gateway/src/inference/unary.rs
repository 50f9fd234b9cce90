//! A complete relayed response. For a back-end of the same dialect its raw bytes are forwarded; otherwise
//! events are collected and encoded. Nothing is sent before the end, so that a failure determines the status.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use engine::{RelayPart, RelayResponse};
use ir::adaptation::{Component, Ledger};
use ir::{ChatResponse, Dialect, Fold};

use super::call_metadata::CallMetadata;
use super::error::VendorError;
use super::response_encoder::ResponseMeta;

pub(super) async fn response(
    mut relayed: RelayResponse,
    mut meta: ResponseMeta,
) -> Result<Response, VendorError> {
    let mut pieces: Vec<Bytes> = Vec::new();
    let mut fold = Fold::new();
    while let Some(part) = relayed.next().await {
        match part {
            RelayPart::Raw(piece) => pieces.push(piece.bytes),
            RelayPart::Replay(_) => {}
            RelayPart::Event(event) => fold.push(event),
        }
    }
    let mut receipt = CallMetadata::of(&relayed);
    receipt.cost_usd = relayed.usage().and_then(|usage| usage.cost_usd.clone());
    if let Some(error) = relayed.failure() {
        return Err(VendorError::from(error.clone()).with_metadata(receipt));
    }
    let mut response = match pieces.len() {
        0 => {
            let mut answer = whole(fold, &receipt)?;
            meta.complete(&mut answer);
            write(meta.dialect, &answer)?
        }
        // A single chunk is forwarded without a copy.
        1 => as_json(Body::from(pieces.swap_remove(0))),
        _ => as_json(Body::from(pieces.concat())),
    };
    receipt.write_headers(response.headers_mut());
    Ok(response)
}

fn as_json(body: Body) -> Response {
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

/// Collects the response from events, also of raw chunks.
pub(super) async fn collect(mut relayed: RelayResponse) -> Result<(ChatResponse, CallMetadata), VendorError> {
    let mut fold = Fold::new();
    while let Some(part) = relayed.next().await {
        match part {
            RelayPart::Raw(piece) => piece.events.into_iter().for_each(|event| fold.push(event)),
            RelayPart::Replay(_) => {}
            RelayPart::Event(event) => fold.push(event),
        }
    }
    let mut receipt = CallMetadata::of(&relayed);
    let answer = whole(fold, &receipt)?;
    receipt.cost_usd = relayed.usage().and_then(|usage| usage.cost_usd.clone());
    Ok((answer, receipt))
}

fn whole(fold: Fold, receipt: &CallMetadata) -> Result<ChatResponse, VendorError> {
    let annotated = |failure: VendorError| failure.with_metadata(receipt.clone());
    let answer = fold
        .finish()
        .map_err(|error| annotated(VendorError::from(error)))?;
    match answer.finish_reason {
        Some(_) => Ok(answer),
        None => Err(annotated(VendorError::new(
            502,
            "E2010",
            "the response ended early",
        ))),
    }
}

pub(super) fn write(dialect: Dialect, answer: &ChatResponse) -> Result<Response, VendorError> {
    let mut ledger = Ledger::new(Component::Adapter);
    let mut body = wire::chat::encode_response(dialect, answer, &mut ledger)?;
    if dialect == Dialect::OpenaiResponses {
        wire::openai_responses::complete(&mut body);
    }
    Ok(Json(body).into_response())
}

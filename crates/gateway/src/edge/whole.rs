//! An answer in one piece, written in the caller's dialect.

use axum::Json;
use axum::response::{IntoResponse, Response};
use ir::adaptation::{Ledger, Party};
use ir::{ChatResponse, Dialect};

use super::failure::Failure;

pub(super) fn write(dialect: Dialect, answer: &ChatResponse) -> Result<Response, Failure> {
    let mut ledger = Ledger::new(Party::Adapter);
    let mut body = wire::chat::encode_response(dialect, answer, &mut ledger)?;
    if dialect == Dialect::OpenaiResponses {
        wire::openai_responses::complete(&mut body);
    }
    Ok(Json(body).into_response())
}

//! The caller as a part of a request.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, StatusCode};
use module::Code;
use module::envelope::ErrorBody;
use tenancy::Caller;

use crate::response::Refusal;

/// Whoever makes the request. Where nobody was identified there is no answer.
#[derive(Clone, Debug)]
pub(crate) struct By(pub(crate) Arc<Caller>);

impl<S: Send + Sync> FromRequestParts<S> for By {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        Self::of(&parts.extensions)
    }
}

impl By {
    pub(crate) fn of(extensions: &Extensions) -> Result<Self, Refusal> {
        let caller = extensions.get::<Self>().cloned();
        caller.ok_or_else(|| {
            let body = ErrorBody::new(Code::E4007, "nobody was identified");
            Refusal::with_status(body, StatusCode::UNAUTHORIZED)
        })
    }
}

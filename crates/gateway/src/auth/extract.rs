//! The caller as a part of a request.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, StatusCode};
use module::Code;
use module::envelope::ErrorBody;
use tenancy::Caller;

use crate::response::ApiError;

/// Whoever makes the request. Where nobody was identified there is no answer.
#[derive(Clone, Debug)]
pub(crate) struct AuthenticatedCaller(pub(crate) Arc<Caller>);

impl<S: Send + Sync> FromRequestParts<S> for AuthenticatedCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::of(&parts.extensions)
    }
}

impl AuthenticatedCaller {
    pub(crate) fn of(extensions: &Extensions) -> Result<Self, ApiError> {
        let caller = extensions.get::<Self>().cloned();
        caller.ok_or_else(|| {
            let body = ErrorBody::new(Code::E4007, "nobody was identified");
            ApiError::with_status(body, StatusCode::UNAUTHORIZED)
        })
    }
}

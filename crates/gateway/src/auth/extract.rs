//! Extractor of the authenticated caller.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, StatusCode};
use module::Code;
use module::envelope::ErrorBody;
use tenancy::Caller;

use crate::response::ApiError;

/// The caller of the request. Rejects the request if authentication was skipped.
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
            let body = ErrorBody::new(Code::E4007, "not authenticated");
            ApiError::with_status(body, StatusCode::UNAUTHORIZED)
        })
    }
}

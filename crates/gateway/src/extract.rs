//! Extractors whose rejections are envelopes, like all other errors.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use module::Code;
use module::envelope::ErrorBody;
use serde::de::DeserializeOwned;

use crate::response::ApiError;

/// The single path parameter.
#[derive(Debug)]
pub(crate) struct PathName(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, state).await;
        let found = params
            .ok()
            .and_then(|params| params.iter().next().map(|(_, value)| String::from(value)));
        found
            .map(Self)
            .ok_or_else(|| ApiError::new(ErrorBody::new(Code::E4009, "the path is not valid text")))
    }
}

/// The query string.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        query.map(|query| Self(query.0)).map_err(|error| {
            ApiError::new(ErrorBody::new(
                Code::E1001,
                format!("the query cannot be read: {}", error.body_text()),
            ))
        })
    }
}

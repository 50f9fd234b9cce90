//! What a caller may ask of this server beyond what its vendor knows: in the body under `cogn`, or in a
//! header where the body is not the caller's to write. Neither ever reaches a back-end.

use axum::http::HeaderMap;
use ir::{Degradation, Map};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::VendorError;

const VALIDATE_HEADER: &str = "x-cogn-validate";
const DEGRADATION_HEADER: &str = "x-cogn-degradation";

/// Unknown wishes are left alone: they may be a newer client's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct RequestExtensions {
    pub(super) validate: ValidateMode,
    /// What is to happen where a back-end lacks what is asked for.
    pub(super) degradation: Option<Degradation>,
}

/// Whether an answer is held to the schema that was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ValidateMode {
    #[default]
    Off,
    /// An answer that does not fit is an error.
    Check,
    /// An answer that does not fit is mended, or asked for again.
    Repair,
}

impl RequestExtensions {
    /// Takes `cogn` out of the body. What the body says wins over the header.
    pub(super) fn take(body: &mut Map, headers: &HeaderMap) -> Result<Self, VendorError> {
        if let Some(value) = body.shift_remove("cogn") {
            return serde_json::from_value(value)
                .map_err(|error| VendorError::invalid(format!("`cogn`: {error}")));
        }
        let validate = said(
            headers,
            VALIDATE_HEADER,
            "X-Cogn-Validate is `off`, `check` or `repair`",
        )?;
        let message = "X-Cogn-Degradation is `strict`, `warn` or `allow`";
        Ok(Self {
            validate: validate.unwrap_or_default(),
            degradation: said(headers, DEGRADATION_HEADER, message)?,
        })
    }
}

/// The word in a header, if it is one that is known.
fn said<T: DeserializeOwned>(headers: &HeaderMap, name: &str, message: &str) -> Result<Option<T>, VendorError> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let word = Value::from(value.to_str().unwrap_or_default());
    let known = serde_json::from_value(word).map_err(|_| VendorError::invalid(message))?;
    Ok(Some(known))
}

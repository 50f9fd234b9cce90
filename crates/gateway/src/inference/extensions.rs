//! Extensions of this server in vendor requests: in the body under `cogn`, or in a header if the client
//! cannot change the body. They are never sent to a back-end.

use axum::http::HeaderMap;
use ir::{Degradation, Map};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::VendorError;

const VALIDATE_HEADER: &str = "x-cogn-validate";
const DEGRADATION_HEADER: &str = "x-cogn-degradation";

/// Unknown fields are ignored: they may be those of a newer client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct RequestExtensions {
    pub(super) validate: ValidateMode,
    /// What happens if a back-end does not support a requested feature.
    pub(super) degradation: Option<Degradation>,
}

/// Whether an answer is validated against the requested schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ValidateMode {
    #[default]
    Off,
    /// An invalid answer is an error.
    Check,
    /// An invalid answer is repaired or requested again.
    Repair,
}

impl RequestExtensions {
    /// Removes `cogn` from the body. The body takes precedence over the headers.
    pub(super) fn take(body: &mut Map, headers: &HeaderMap) -> Result<Self, VendorError> {
        if let Some(value) = body.shift_remove("cogn") {
            return serde_json::from_value(value)
                .map_err(|error| VendorError::invalid(format!("`cogn`: {error}")));
        }
        let validate = header_value(
            headers,
            VALIDATE_HEADER,
            "X-Cogn-Validate must be `off`, `check` or `repair`",
        )?;
        let message = "X-Cogn-Degradation must be `strict`, `warn` or `allow`";
        Ok(Self {
            validate: validate.unwrap_or_default(),
            degradation: header_value(headers, DEGRADATION_HEADER, message)?,
        })
    }
}

/// The value of a header, if it is a known one.
fn header_value<T: DeserializeOwned>(
    headers: &HeaderMap,
    name: &str,
    message: &str,
) -> Result<Option<T>, VendorError> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let word = Value::from(value.to_str().unwrap_or_default());
    let known = serde_json::from_value(word).map_err(|_| VendorError::invalid(message))?;
    Ok(Some(known))
}

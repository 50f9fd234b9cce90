//! What a caller may ask of this server beyond what its vendor knows: in the body under `cogn`, or in a
//! header where the body is not the caller's to write. Neither ever reaches a back-end.

use axum::http::HeaderMap;
use ir::Map;
use serde::Deserialize;
use serde_json::Value;

use super::failure::Failure;

const VALIDATE_HEADER: &str = "x-cogn-validate";

/// Unknown wishes are left alone: they may be a newer client's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Wish {
    pub(super) validate: Validate,
}

/// Whether an answer is held to the schema that was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Validate {
    #[default]
    Off,
    /// An answer that does not fit is an error.
    Check,
    /// An answer that does not fit is mended, or asked for again.
    Repair,
}

impl Wish {
    /// Takes `cogn` out of the body. What the body says wins over the header.
    pub(super) fn take(body: &mut Map, headers: &HeaderMap) -> Result<Self, Failure> {
        if let Some(value) = body.shift_remove("cogn") {
            return serde_json::from_value(value)
                .map_err(|error| Failure::invalid(format!("`cogn`: {error}")));
        }
        let Some(value) = headers.get(VALIDATE_HEADER) else {
            return Ok(Self::default());
        };
        let word = Value::from(value.to_str().unwrap_or_default());
        let validate = serde_json::from_value(word)
            .map_err(|_| Failure::invalid("X-Cogn-Validate is `off`, `check` or `repair`"))?;
        Ok(Self { validate })
    }
}

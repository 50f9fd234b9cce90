//! Integers of requests. JSON has one kind of number, and JSON Schema counts `696051.0` as an integer; some
//! clients write integers like that.

use module::stream::Checkpoint;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::Number;

/// The first integer that a double cannot represent exactly is the next one.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

pub(super) fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = Number::deserialize(deserializer)?;
    if let Some(integer) = number.as_u64() {
        return Ok(integer);
    }
    match number.as_f64() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an integer in the range"
        )]
        Some(float) if float.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&float) => Ok(float as u64),
        float => Err(Error::invalid_value(
            float.map_or(Unexpected::Other("a number"), Unexpected::Float),
            &"an integer that is not negative",
        )),
    }
}

/// The checkpoint of a resume point, with such an offset.
pub(super) fn checkpoint<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Checkpoint>, D::Error> {
    #[derive(Deserialize)]
    #[serde(expecting = "an object")]
    struct Requested {
        #[serde(deserialize_with = "integer")]
        offset: u64,
        hash: String,
    }
    let requested = Option::<Requested>::deserialize(deserializer)?;
    Ok(requested.map(|Requested { offset, hash }| Checkpoint { offset, hash }))
}

//! The two encodings of a vector: numbers, and little-endian 32-bit floats in base64. The response to a
//! client uses the requested encoding, independent of the back-end's.

use ir::envelope::EmbeddingVector;
use ir::media::Base64;
use ir::{Error, Phase};
use serde_json::Number;

/// The vector in the named encoding; any name but `base64` means numbers.
pub fn convert(vector: &EmbeddingVector, form: Option<&str>) -> Result<EmbeddingVector, Error> {
    match (vector, form == Some("base64")) {
        (EmbeddingVector::Numbers(numbers), true) => Ok(EmbeddingVector::Base64(packed(numbers)?)),
        (EmbeddingVector::Base64(text), false) => Ok(EmbeddingVector::Numbers(unpacked(text)?)),
        (same, _) => Ok(same.clone()),
    }
}

fn packed(numbers: &[Number]) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(numbers.len() * 4);
    for number in numbers {
        let value = number.as_f64().ok_or_else(broken)? as f32;
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    Ok(String::from(Base64::from_bytes(&bytes).as_str()))
}

fn unpacked(text: &str) -> Result<Vec<Number>, Error> {
    let bytes = Base64::from_text(text).decode().map_err(|_| broken())?;
    if bytes.len() % 4 != 0 {
        return Err(broken());
    }
    let floats = bytes.chunks_exact(4).map(|four| {
        let mut little = [0; 4];
        little.copy_from_slice(four);
        number(f32::from_le_bytes(little)).ok_or_else(broken)
    });
    floats.collect()
}

/// The shortest number that parses to this float: 0.1 rather than 0.10000000149011612.
fn number(float: f32) -> Option<Number> {
    Number::from_f64(float.to_string().parse().ok()?)
}

fn broken() -> Error {
    Error::invalid_response(Phase::MidStream, "the answer has an invalid vector")
}

#[cfg(test)]
mod tests {
    use ir::envelope::EmbeddingVector;
    use proptest::prelude::*;

    use super::{convert, number};

    #[test]
    fn requested_encoding_is_returned_unchanged() {
        let text = EmbeddingVector::Base64(String::from("anything"));
        assert_eq!(convert(&text, Some("base64")).unwrap(), text);
        assert!(convert(&text, None).is_err(), "these are not floats");
    }

    proptest! {
        #[test]
        fn encodings_convert_without_loss(floats in prop::collection::vec(prop::num::f32::NORMAL, 0..20)) {
            let numbers = floats.iter().map(|float| number(*float).unwrap()).collect();
            let numbers = EmbeddingVector::Numbers(numbers);
            let packed = convert(&numbers, Some("base64")).unwrap();
            prop_assert!(matches!(packed, EmbeddingVector::Base64(_)));
            prop_assert_eq!(convert(&packed, Some("float")).unwrap(), numbers);
        }
    }
}

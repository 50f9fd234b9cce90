//! Gemini's embeddings, always sent as a batch: one text is a batch of one.
//! <https://ai.google.dev/api/embeddings>

use ir::envelope::{EmbeddingsRequest, EmbeddingsResponse};
use ir::{Dialect, Error, Ext, Fields, Ledger, Map};
use serde_json::{Value, json};

use crate::embeddings::{listed, misshapen, texts_only, vector};

const OWN: Dialect = Dialect::Gemini;

pub(crate) fn encode_request(request: &EmbeddingsRequest, ledger: &mut Ledger) -> Result<Value, Error> {
    texts_only(request)?;
    let model = request.model.as_deref().unwrap_or_default();
    let model = model.strip_prefix("models/").unwrap_or(model);
    let one = |text: &String| {
        let mut map = Map::new();
        map.insert(String::from("model"), json!(format!("models/{model}")));
        map.insert(String::from("content"), json!({"parts": [{"text": text}]}));
        if let Some(dimensions) = request.dimensions {
            map.insert(String::from("outputDimensionality"), json!(dimensions));
        }
        request.ext.restore(OWN, &mut map);
        Value::Object(map)
    };
    let requests: Vec<Value> = request.input.iter().map(one).collect();
    // The vector encoding is not a loss: it is converted to the requested one afterwards.
    crate::unknown_fields::book_rest(&request.rest, OWN, ledger);
    ledger.foreign("/payload", &request.ext, OWN);
    Ok(json!({"requests": requests}))
}

pub(crate) fn decode_response(body: Value) -> Result<EmbeddingsResponse, Error> {
    let (fields, list) = listed(OWN, body)?;
    let mut embeddings = Vec::with_capacity(list.len());
    for (index, item) in (0..).zip(list) {
        let item = Fields::of(item).ok_or_else(|| misshapen("has an embedding that is not an object"));
        let mut item = item?;
        let values = item
            .take("values")
            .ok_or_else(|| misshapen("has an embedding without values"))?;
        embeddings.push(vector(index, values, Ext::of(OWN, item.rest()))?);
    }
    Ok(EmbeddingsResponse {
        model: None,
        embeddings,
        usage: None,
        ext: Ext::of(OWN, fields.rest()),
        rest: Map::new(),
    })
}

#[cfg(test)]
mod tests {
    use ir::{Component, Ledger};
    use serde_json::json;

    use super::{decode_response, encode_request};

    fn request(value: serde_json::Value) -> ir::envelope::EmbeddingsRequest {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn every_text_is_one_request_of_a_batch() {
        let mut ledger = Ledger::new(Component::Adapter);
        let asked = request(json!({"model": "models/e-1", "input": ["a", "b"], "dimensions": 64}));
        let body = encode_request(&asked, &mut ledger).unwrap();
        assert_eq!(
            body,
            json!({"requests": [
                {"model": "models/e-1", "content": {"parts": [{"text": "a"}]}, "outputDimensionality": 64},
                {"model": "models/e-1", "content": {"parts": [{"text": "b"}]}, "outputDimensionality": 64},
            ]})
        );
        assert_eq!(ledger.losses().count(), 0);
    }

    #[test]
    fn decodes_vectors_in_order_and_errors() {
        let answer = json!({"embeddings": [{"values": [0.5, -1]}, {"values": [0.25, 2]}]});
        let response = decode_response(answer).unwrap();
        let places: Vec<u64> = response.embeddings.iter().map(|one| one.index).collect();
        assert_eq!(places, [0, 1]);
        assert_eq!(
            serde_json::to_value(&response.embeddings[1].vector).unwrap(),
            json!([0.25, 2])
        );
        for broken in [
            json!({"embeddings": [{"value": 1}]}),
            json!({"embeddings": [{"values": ["a"]}]}),
            json!({"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}),
            json!([]),
        ] {
            assert!(decode_response(broken).is_err());
        }
    }
}

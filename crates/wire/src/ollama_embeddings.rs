//! Ollama's embeddings.
//! <https://github.com/ollama/ollama/blob/main/docs/api.md#generate-embeddings>

use ir::envelope::{EmbeddingsRequest, EmbeddingsResponse};
use ir::{Dialect, Error, Ext, Ledger, Map};
use serde_json::{Value, json};

use crate::embeddings::{listed, texts_only, vector};
use crate::ollama::usage;

const OWN: Dialect = Dialect::Ollama;

pub(crate) fn encode_request(request: &EmbeddingsRequest, ledger: &mut Ledger) -> Result<Value, Error> {
    texts_only(request)?;
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            map.insert(String::from(key), value);
        }
    };
    put("model", json!(request.model));
    put("input", json!(request.input));
    put("dimensions", json!(request.dimensions));
    // The vector encoding is not a loss: it is converted to the requested one afterwards.
    crate::unknown_fields::book_rest(&request.rest, OWN, ledger);
    request.ext.restore(OWN, &mut map);
    ledger.foreign("/payload", &request.ext, OWN);
    Ok(Value::Object(map))
}

pub(crate) fn decode_response(body: Value) -> Result<EmbeddingsResponse, Error> {
    let (mut fields, list) = listed(OWN, body)?;
    let vectors = (0..).zip(list);
    let embeddings = vectors
        .map(|(index, values)| vector(index, values, Ext::default()))
        .collect::<Result<_, _>>()?;
    let usage = usage::take(&mut fields);
    Ok(EmbeddingsResponse {
        model: fields.string("model"),
        embeddings,
        usage,
        ext: Ext::of(OWN, fields.rest()),
        rest: Map::new(),
    })
}

#[cfg(test)]
mod tests {
    use ir::{Component, Ledger};
    use serde_json::json;

    use super::{decode_response, encode_request};

    #[test]
    fn encodes_texts_and_decodes_vectors() {
        let mut ledger = Ledger::new(Component::Adapter);
        let asked = json!({"model": "all-minilm", "input": "a", "encoding_format": "base64"});
        let asked = serde_json::from_value(asked).unwrap();
        let body = encode_request(&asked, &mut ledger).unwrap();
        assert_eq!(body, json!({"model": "all-minilm", "input": ["a"]}));
        assert_eq!(ledger.losses().count(), 0);

        let answer = json!({
            "model": "all-minilm", "embeddings": [[0.5, -1.0]],
            "total_duration": 14_143_917, "load_duration": 1_019_500, "prompt_eval_count": 8
        });
        let response = decode_response(answer).unwrap();
        assert_eq!(response.model.as_deref(), Some("all-minilm"));
        assert_eq!(response.usage.and_then(|usage| usage.input_tokens), Some(8));
        assert_eq!(response.embeddings.len(), 1);
        assert!(decode_response(json!({"error": "model not found"})).is_err());
    }
}

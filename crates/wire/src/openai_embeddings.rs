//! OpenAI's embeddings.
//! <https://platform.openai.com/docs/api-reference/embeddings>

use ir::envelope::{Embedding, EmbeddingVector, EmbeddingsRequest, EmbeddingsResponse};
use ir::{Dialect, Error, Ext, Fields, Ledger, Map, Phase};
use serde_json::{Value, json};

use crate::openai_chat::usage;
use crate::{constant_field, error_body};

const OWN: Dialect = Dialect::OpenaiEmbeddings;
const WORDS: usage::UsageFields = usage::UsageFields {
    dialect: OWN,
    input: "prompt_tokens",
    output: "completion_tokens",
};

/// Extension field with token lists as received: they are not text, and only this vendor can read them.
pub(crate) const TOKENS: &str = "$tokens";

/// Whether the request contains tokens instead of texts.
pub fn has_tokens(request: &EmbeddingsRequest) -> bool {
    request.ext.value(OWN, TOKENS).is_some()
}

pub fn decode_request(body: Value) -> Result<EmbeddingsRequest, Error> {
    let mut fields = Fields::of(body).ok_or_else(|| Error::invalid_request("the body is not an object"))?;
    let mut ext = Ext::default();
    let input = if let Some(text) = fields.string("input") {
        ext.set(OWN, "$input", "string");
        vec![text]
    } else if let Some(texts) = fields.strings("input") {
        texts
    } else {
        let why = "`input` must be a string, a list of strings, or tokens";
        let tokens = fields.take("input").filter(are_tokens);
        ext.set(OWN, TOKENS, tokens.ok_or_else(|| Error::invalid_request(why))?);
        Vec::new()
    };
    let model = fields.string("model");
    let dimensions = fields.u32("dimensions");
    let encoding_format = fields.string("encoding_format");
    ext.extend(OWN, fields.rest());
    Ok(EmbeddingsRequest {
        model,
        input,
        dimensions,
        encoding_format,
        ext,
        rest: Map::new(),
    })
}

/// A list of numbers, or a list of such lists.
fn are_tokens(value: &Value) -> bool {
    let numbers = |value: &Value| {
        let list = value.as_array();
        list.is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_u64))
    };
    let list = value.as_array();
    numbers(value) || list.is_some_and(|list| !list.is_empty() && list.iter().all(numbers))
}

pub fn encode_request(request: &EmbeddingsRequest, ledger: &mut Ledger) -> Value {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            map.insert(String::from(key), value);
        }
    };
    put("model", json!(request.model));
    match request.input.as_slice() {
        [] if has_tokens(request) => put("input", json!(request.ext.value(OWN, TOKENS))),
        [one] if request.ext.note(OWN, "$input").is_some() => put("input", json!(one)),
        list => put("input", json!(list)),
    }
    put("dimensions", json!(request.dimensions));
    put("encoding_format", json!(request.encoding_format));
    crate::unknown_fields::book_rest(&request.rest, OWN, ledger);
    request.ext.restore(OWN, &mut map);
    ledger.foreign("/payload", &request.ext, OWN);
    Value::Object(map)
}

pub fn decode_response(body: Value) -> Result<EmbeddingsResponse, Error> {
    if let Some(error) = error_body::from_value(OWN, &body, Phase::BeforeFirstByte, None) {
        return Err(error);
    }
    let bad = |what: &str| Error::invalid_response(Phase::BeforeFirstByte, format!("the answer {what}"));
    let mut fields = Fields::of(body).ok_or_else(|| bad("is not an object"))?;
    let data = fields.array("data").ok_or_else(|| bad("has no data"))?;
    let mut embeddings = Vec::with_capacity(data.len());
    for (at, item) in (0..).zip(data) {
        let mut item = Fields::of(item).ok_or_else(|| bad("has an embedding that is not an object"))?;
        let mut ext = Ext::default();
        constant_field::take(&mut item, OWN, &mut ext, "", "object", &json!("embedding"));
        let vector = item
            .take("embedding")
            .ok_or_else(|| bad("has an embedding without a vector"))?;
        let vector: EmbeddingVector =
            serde_json::from_value(vector).map_err(|_| bad("has an invalid vector"))?;
        let index = item.u64("index").unwrap_or_else(|| {
            constant_field::note_absent(OWN, &mut ext, "", "index");
            at
        });
        ext.extend(OWN, item.rest());
        embeddings.push(Embedding {
            index,
            vector,
            ext,
            rest: Map::new(),
        });
    }
    let mut ext = Ext::default();
    constant_field::take(&mut fields, OWN, &mut ext, "", "object", &json!("list"));
    let model = fields.string("model");
    let usage = fields
        .object("usage")
        .map(|usage| usage::decode(&Value::Object(usage.rest()), OWN));
    ext.extend(OWN, fields.rest());
    Ok(EmbeddingsResponse {
        model,
        embeddings,
        usage,
        ext,
        rest: Map::new(),
    })
}

pub fn encode_response(response: &EmbeddingsResponse, ledger: &mut Ledger) -> Value {
    let item = |embedding: &Embedding| {
        let mut map = Map::new();
        map.insert(String::from("embedding"), json!(embedding.vector));
        embedding.ext.restore(OWN, &mut map);
        constant_field::put(&mut map, OWN, &embedding.ext, "", "object", "embedding");
        constant_field::put(&mut map, OWN, &embedding.ext, "", "index", embedding.index);
        Value::Object(map)
    };
    let mut map = Map::new();
    map.insert(
        String::from("data"),
        response.embeddings.iter().map(item).collect(),
    );
    if let Some(model) = &response.model {
        map.insert(String::from("model"), json!(model));
    }
    if let Some(counts) = &response.usage {
        map.insert(String::from("usage"), usage::encode(counts, &WORDS));
    }
    response.ext.restore(OWN, &mut map);
    constant_field::put(&mut map, OWN, &response.ext, "", "object", "list");
    ledger.foreign("/result/payload", &response.ext, OWN);
    Value::Object(map)
}

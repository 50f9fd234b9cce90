//! Embeddings in every dialect that has them: one set of functions over all dialects, for calls of back-ends.

use ir::envelope::{Embedding, EmbeddingVector, EmbeddingsRequest, EmbeddingsResponse};
use ir::{Dialect, Error, ErrorKind, Ext, Fields, Ledger, Map, Phase};
use serde_json::Value;

use crate::{error_body, gemini_embeddings, ollama_embeddings, openai_embeddings};

/// Encodes a request. What the dialect does not support is recorded in the ledger.
pub fn encode_request(
    dialect: Dialect,
    request: &EmbeddingsRequest,
    ledger: &mut Ledger,
) -> Result<Value, Error> {
    match dialect {
        Dialect::OpenaiEmbeddings => Ok(openai_embeddings::encode_request(request, ledger)),
        Dialect::Gemini => gemini_embeddings::encode_request(request, ledger),
        Dialect::Ollama => ollama_embeddings::encode_request(request, ledger),
        other => Err(no_dialect(other)),
    }
}

/// Decodes a response. An error body with a success status is returned as an error.
pub fn decode_response(dialect: Dialect, body: Value) -> Result<EmbeddingsResponse, Error> {
    match dialect {
        Dialect::OpenaiEmbeddings => openai_embeddings::decode_response(body),
        Dialect::Gemini => gemini_embeddings::decode_response(body),
        Dialect::Ollama => ollama_embeddings::decode_response(body),
        other => Err(no_dialect(other)),
    }
}

/// The fields of a response and the list of its vectors, for dialects with the vectors under `embeddings`.
pub(crate) fn listed(own: Dialect, body: Value) -> Result<(Fields, Vec<Value>), Error> {
    if let Some(error) = error_body::from_value(own, &body, Phase::BeforeFirstByte, None) {
        return Err(error);
    }
    let mut fields = Fields::of(body).ok_or_else(|| misshapen("is not an object"))?;
    let list = fields
        .array("embeddings")
        .ok_or_else(|| misshapen("has no embeddings"))?;
    Ok((fields, list))
}

/// One vector of such a response with its dialect-specific fields.
pub(crate) fn vector(index: u64, values: Value, ext: Ext) -> Result<Embedding, Error> {
    let numbers = serde_json::from_value(values).map_err(|_| misshapen("has an invalid vector"))?;
    Ok(Embedding {
        index,
        vector: EmbeddingVector::Numbers(numbers),
        ext,
        rest: Map::new(),
    })
}

pub(crate) fn misshapen(what: &str) -> Error {
    Error::invalid_response(Phase::BeforeFirstByte, format!("the answer {what}"))
}

/// Token ids depend on one model's vocabulary, so token lists are valid only for the vendor of the client.
pub(crate) fn texts_only(request: &EmbeddingsRequest) -> Result<(), Error> {
    let own = Dialect::OpenaiEmbeddings;
    match request.ext.value(own, openai_embeddings::TOKENS) {
        Some(_) => {
            let message = "token lists are not supported by this model; send text";
            Err(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message))
        }
        None => Ok(()),
    }
}

fn no_dialect(dialect: Dialect) -> Error {
    let message = format!("{dialect} is not an embeddings dialect");
    Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message)
}

//! Chat completions in every dialect that has them: one set of functions over all dialects, called by the
//! gateway. The modules of the dialects do not depend on each other.

use ir::{ChatRequest, ChatResponse, Dialect, Error, Ledger, Message, PartBody};
use serde_json::{Value, json};

use crate::control_tokens::ControlTokenDetector;
use crate::{anthropic, gemini, ollama, openai_chat, openai_responses};

/// The dialects with chat completions.
pub const DIALECTS: &[Dialect] = &[
    Dialect::OpenaiChat,
    Dialect::OpenaiResponses,
    Dialect::Anthropic,
    Dialect::Gemini,
    Dialect::Ollama,
];

pub fn decode_request(dialect: Dialect, body: Value) -> Result<ChatRequest, Error> {
    match dialect {
        Dialect::OpenaiChat => openai_chat::decode_request(body),
        Dialect::OpenaiResponses => openai_responses::decode_request(body),
        Dialect::Anthropic => anthropic::decode_request(body),
        Dialect::Gemini => gemini::decode_request(body),
        Dialect::Ollama => ollama::decode_request(body),
        _ => Err(not_chat(dialect)),
    }
}

/// Encodes a request. What the dialect does not support is recorded in the ledger.
pub fn encode_request(dialect: Dialect, chat: &ChatRequest, ledger: &mut Ledger) -> Result<Value, Error> {
    match dialect {
        Dialect::OpenaiChat => openai_chat::encode_request(chat, ledger),
        Dialect::OpenaiResponses => openai_responses::encode_request(chat, ledger),
        Dialect::Anthropic => anthropic::encode_request(chat, ledger),
        Dialect::Gemini => gemini::encode_request(chat, ledger),
        Dialect::Ollama => ollama::encode_request(chat, ledger),
        _ => Err(not_chat(dialect)),
    }
}

/// Decodes a response. An error body with a success status is returned as an error.
pub fn decode_response(dialect: Dialect, body: Value) -> Result<ChatResponse, Error> {
    let mut response = match dialect {
        Dialect::OpenaiChat => openai_chat::decode_response(body),
        Dialect::OpenaiResponses => openai_responses::decode_response(body),
        Dialect::Anthropic => anthropic::decode_response(body),
        Dialect::Gemini => gemini::decode_response(body),
        Dialect::Ollama => ollama::decode_response(body),
        _ => Err(not_chat(dialect)),
    }?;
    let mut markers = ControlTokenDetector::default();
    let found = response.parts.iter().find_map(|part| match &part.body {
        PartBody::Text(text) | PartBody::Refusal(text) => {
            markers.begin();
            markers.look(text)
        }
        _ => None,
    });
    response.warnings.extend(found);
    Ok(response)
}

pub fn encode_response(
    dialect: Dialect,
    response: &ChatResponse,
    ledger: &mut Ledger,
) -> Result<Value, Error> {
    match dialect {
        Dialect::OpenaiChat => openai_chat::encode_response(response, ledger),
        Dialect::OpenaiResponses => openai_responses::encode_response(response, ledger),
        Dialect::Anthropic => anthropic::encode_response(response, ledger),
        Dialect::Gemini => gemini::encode_response(response, ledger),
        Dialect::Ollama => ollama::encode_response(response, ledger),
        _ => Err(not_chat(dialect)),
    }
}

/// The error body in the format of the dialect.
pub fn encode_error(dialect: Dialect, error: &Error) -> Value {
    match dialect {
        Dialect::Anthropic => anthropic::encode_error(error),
        Dialect::Gemini => gemini::encode_error(error),
        Dialect::Ollama => ollama::encode_error(error),
        _ => openai_chat::encode_error(error),
    }
}

/// A list of messages without the enclosing request.
pub fn decode_messages(dialect: Dialect, list: Value) -> Result<Vec<Message>, Error> {
    if dialect == Dialect::Canonical {
        return serde_json::from_value(list).map_err(|why| Error::invalid_request(why.to_string()));
    }
    Ok(decode_request(dialect, json!({ (messages_field(dialect)): list }))?.messages)
}

/// The messages as a list; where a dialect has the system prompt as a separate field, an object of both.
pub fn encode_messages(dialect: Dialect, messages: &[Message], ledger: &mut Ledger) -> Result<Value, Error> {
    if dialect == Dialect::Canonical {
        return serde_json::to_value(messages).map_err(|why| Error::invalid_request(why.to_string()));
    }
    let request = ChatRequest {
        messages: messages.to_vec(),
        ..ChatRequest::default()
    };
    let Value::Object(body) = encode_request(dialect, &request, ledger)? else {
        return Err(not_chat(dialect));
    };
    let field = messages_field(dialect);
    let kept = [field, "system", "instructions", "systemInstruction"];
    let mut body: ir::Map = body
        .into_iter()
        .filter(|(key, _)| kept.contains(&key.as_str()))
        .collect();
    Ok(match body.len() {
        1 => body.shift_remove(field).unwrap_or_default(),
        _ => Value::Object(body),
    })
}

fn messages_field(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenaiResponses => "input",
        Dialect::Gemini => "contents",
        _ => "messages",
    }
}

fn not_chat(dialect: Dialect) -> Error {
    Error::invalid_request(format!("{dialect} is not a chat dialect"))
}

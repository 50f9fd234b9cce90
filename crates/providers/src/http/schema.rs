//! The schema of an answer on its way into a body. It is large and the same for every run of a module, so the body is
//! written with a mark in its place, and the text that the schema has already is put where the mark stands. The mark
//! is made of dice and leaves this process never, so nobody can have written it.

use std::sync::OnceLock;

use ir::{ChatRequest, Dialect, Error, ErrorKind, Phase, ResponseFormat, SharedJson};
use memchr::memmem;
use serde_json::Value;

/// A schema that was taken out.
#[derive(Debug)]
pub(super) struct Lifted {
    schema: SharedJson,
    mark: &'static str,
}

/// Takes the schema out, in a dialect that writes it as it is.
pub(super) fn lift(dialect: Dialect, chat: &mut ChatRequest) -> Option<Lifted> {
    if dialect != Dialect::OpenaiChat {
        return None;
    }
    let mark = mark()?;
    match &mut chat.response_format {
        Some(ResponseFormat::JsonSchema { schema, .. }) => Some(Lifted {
            schema: std::mem::replace(schema, Value::from(mark).into()),
            mark,
        }),
        _ => None,
    }
}

impl Lifted {
    /// Puts it where it belongs.
    pub(super) fn put_back(&self, body: &[u8]) -> Result<Vec<u8>, Error> {
        // With the quotes around it.
        let at = memmem::find(body, self.mark.as_bytes()).and_then(|at| at.checked_sub(1));
        let parts = at.and_then(|at| {
            let behind = body.get(at + self.mark.len() + 2..)?;
            Some((body.get(..at)?, behind))
        });
        let Some((before, behind)) = parts else {
            let message = "the schema of the answer found no place in the request";
            return Err(Error::new(ErrorKind::Internal, Phase::BeforeSend, message));
        };
        Ok([before, self.schema.text().as_bytes(), behind].concat())
    }
}

/// `None` without dice: then the schema stays where it is.
fn mark() -> Option<&'static str> {
    static MARK: OnceLock<Option<String>> = OnceLock::new();
    let mark = MARK.get_or_init(|| {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).ok()?;
        Some(format!("schema-{:032x}", u128::from_le_bytes(secret)))
    });
    mark.as_deref()
}

#[cfg(test)]
mod tests {
    use ir::adaptation::{Ledger, Party};
    use ir::{ChatRequest, Dialect, Message, ResponseFormat, Role};
    use serde_json::{Value, json};

    use super::lift;

    #[test]
    fn the_body_is_the_one_that_would_have_been_written() {
        let schema = json!({"type": "object", "properties": {"a": {"const": "schema-\"x\""}}});
        let chat = ChatRequest {
            messages: vec![Message::text(Role::User, "schema-")],
            response_format: Some(ResponseFormat::JsonSchema {
                name: None,
                description: None,
                schema: schema.into(),
                strict: Some(true),
            }),
            ..ChatRequest::default()
        };
        let encode = |chat: &ChatRequest| {
            let mut ledger = Ledger::new(Party::Adapter);
            let body = wire::chat::encode_request(Dialect::OpenaiChat, chat, &mut ledger).unwrap();
            serde_json::to_vec(&body).unwrap()
        };
        let mut without = chat.clone();
        let lifted = lift(Dialect::OpenaiChat, &mut without).unwrap();
        let body = lifted.put_back(&encode(&without)).unwrap();
        assert_eq!(body, encode(&chat));
        assert!(lifted.put_back(b"{}").is_err());
        assert!(lift(Dialect::Gemini, &mut without).is_none());
        let plain = serde_json::from_slice::<Value>(&body);
        assert!(plain.is_ok());
    }
}

//! Validation of answers against the schema of `response_format`, by this server. Text around the JSON can be
//! removed; the JSON is never changed.

use std::sync::Arc;

use engine::SchemaThreads;
use ir::{ChatRequest, ChatResponse, Message, Part, PartBody, ResponseFormat, Role};
use module::schema::CompiledSchema;
use serde_json::Value;

use super::error::VendorError;
use crate::limits;

#[derive(Debug)]
pub(super) struct SchemaCheck {
    schema: Arc<CompiledSchema>,
    threads: SchemaThreads,
}

/// Result of the validation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Fits,
    /// The answer matches without the text around this.
    FitsAs(String),
    /// The schema errors.
    Misfit(Vec<String>),
}

impl SchemaCheck {
    /// `None` if no schema was requested.
    pub(super) async fn of(chat: &ChatRequest, threads: &SchemaThreads) -> Result<Option<Self>, VendorError> {
        let schema = match &chat.response_format {
            Some(ResponseFormat::JsonSchema { schema, .. }) => Value::clone(schema),
            Some(ResponseFormat::JsonObject) => serde_json::json!({"type": "object"}),
            Some(ResponseFormat::Text) | None => return Ok(None),
        };
        let unusable =
            |why: String| VendorError::invalid(format!("the response schema is not usable: {why}"));
        let compiled = threads.run(|| CompiledSchema::of_request(schema)).await;
        let compiled = compiled
            .map_err(|_| VendorError::new(500, "E4000", "the schema could not be compiled"))?
            .map_err(|error| unusable(error.message))?;
        Ok(Some(Self {
            schema: Arc::new(compiled),
            threads: threads.clone(),
        }))
    }

    /// A tool call is not the final answer and is not validated; a refusal does not match.
    pub(super) async fn judge(&self, response: &ChatResponse) -> Verdict {
        if response.tool_calls().next().is_some() {
            return Verdict::Fits;
        }
        let (schema, text) = (Arc::clone(&self.schema), response.text());
        let verdict = self.threads.run(move || judge(&schema, &text)).await;
        verdict.unwrap_or_else(|_| Verdict::Misfit(vec![String::from("it could not be validated")]))
    }
}

fn judge(schema: &CompiledSchema, text: &str) -> Verdict {
    let whole = match serde_json::from_str::<Value>(text) {
        Ok(value) => misfits(schema, &value),
        Err(error) => vec![format!("it is not JSON: {error}")],
    };
    if whole.is_empty() {
        return Verdict::Fits;
    }
    match inner(text).filter(|inner| {
        let value = serde_json::from_str::<Value>(inner);
        value.is_ok_and(|value| schema.is_valid(&value))
    }) {
        Some(inner) => Verdict::FitsAs(String::from(inner)),
        None => Verdict::Misfit(whole),
    }
}

fn misfits(schema: &CompiledSchema, value: &Value) -> Vec<String> {
    schema
        .errors(value)
        .take(limits::SCHEMA_ERRORS_MAX)
        .map(|error| format!("{}: {}", error.instance_path(), error.masked()))
        .collect()
}

/// The JSON within a text: from its first bracket to its last.
fn inner(text: &str) -> Option<&str> {
    let from = text.find(['{', '['])?;
    let to = text.rfind(['}', ']'])?;
    text.get(from..=to)
}

/// Replaces the text of an answer.
pub(super) fn replace_text(response: &mut ChatResponse, text: String) {
    response.parts.retain(|part| part.as_text().is_none());
    response.parts.push(Part::text(text));
}

/// Appends the invalid answer and a request for a valid one.
pub(super) fn append_reask(chat: &mut ChatRequest, answer: &ChatResponse, misfits: &[String]) {
    let parts = answer
        .parts
        .iter()
        .filter(|part| matches!(part.body, PartBody::Text(_)));
    chat.messages
        .push(Message::new(Role::Assistant, parts.cloned().collect()));
    let wrong = misfits.join("\n- ");
    let text = format!(
        "This answer does not fit the JSON Schema that was asked for:\n- {wrong}\n\
         Answer again with JSON that fits, and with nothing around it."
    );
    chat.messages.push(Message::text(Role::User, text));
}

#[cfg(test)]
mod tests {
    use engine::SchemaThreads;
    use ir::{ChatRequest, ChatResponse, Part, ResponseFormat};
    use serde_json::json;

    use super::{SchemaCheck, Verdict};

    async fn judge(text: &str) -> Verdict {
        let chat = ChatRequest {
            response_format: Some(ResponseFormat::JsonSchema {
                name: None,
                description: None,
                schema: json!({
                    "type": "object", "required": ["n"], "properties": {"n": {"$ref": "#/$defs/n"}},
                    "$defs": {"n": {"type": "integer"}}
                })
                .into(),
                strict: None,
            }),
            ..ChatRequest::default()
        };
        let response = ChatResponse {
            parts: vec![Part::text(text)],
            ..ChatResponse::default()
        };
        let check = SchemaCheck::of(&chat, &SchemaThreads::default()).await;
        check.unwrap().unwrap().judge(&response).await
    }

    #[tokio::test]
    async fn distinguishes_text_around_json_from_invalid_json() {
        assert_eq!(judge(r#"{"n": 3}"#).await, Verdict::Fits);
        assert_eq!(
            judge("Sure!\n```json\n{\"n\": 3}\n```").await,
            Verdict::FitsAs(String::from(r#"{"n": 3}"#))
        );
        for text in [r#"{"n": "3"}"#, "{}", "[]", "", "no", r#"{"n": 3"#] {
            assert!(matches!(judge(text).await, Verdict::Misfit(_)), "{text}");
        }
    }

    #[tokio::test]
    async fn refuses_unusable_schema() {
        for schema in [
            json!({"$ref": "https://elsewhere.example/schema.json"}),
            json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        ] {
            let chat = ChatRequest {
                response_format: Some(ResponseFormat::JsonSchema {
                    name: None,
                    description: None,
                    schema: schema.into(),
                    strict: None,
                }),
                ..ChatRequest::default()
            };
            assert!(SchemaCheck::of(&chat, &SchemaThreads::default()).await.is_err());
        }
    }
}

//! Whether an answer is what its schema says: `response_format` held to by us where the back-end is not
//! trusted to. Text around the JSON can be taken away; the JSON itself is never touched.

use ir::{ChatRequest, ChatResponse, Message, Part, PartBody, ResponseFormat, Role};
use jsonschema::Validator;
use module::schema::reference_problems;
use serde_json::Value;

use super::error::VendorError;
use crate::limits;

#[derive(Debug)]
pub(super) struct SchemaCheck {
    validator: Validator,
}

/// What came of holding an answer to its schema.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Fits,
    /// It fits once this alone is left of it.
    FitsAs(String),
    /// What is wrong with it.
    Misfit(Vec<String>),
}

impl SchemaCheck {
    /// `None` where no schema was asked for; an answer can then be anything.
    pub(super) fn of(chat: &ChatRequest) -> Result<Option<Self>, VendorError> {
        let schema = match &chat.response_format {
            Some(ResponseFormat::JsonSchema { schema, .. }) => Value::clone(schema),
            Some(ResponseFormat::JsonObject) => serde_json::json!({"type": "object"}),
            Some(ResponseFormat::Text) | None => return Ok(None),
        };
        let unusable =
            |why: String| VendorError::invalid(format!("the schema of the answer cannot be used: {why}"));
        // Nothing is ever fetched.
        if let Some(problem) = reference_problems(&schema, &[""]).first() {
            return Err(unusable(format!(
                "`$ref: {}` leads nowhere in it",
                problem.reference
            )));
        }
        let validator = jsonschema::validator_for(&schema).map_err(|error| unusable(error.to_string()))?;
        Ok(Some(Self { validator }))
    }

    /// An answer that calls a tool is not the last one, and a refusal is not one that fits.
    pub(super) fn judge(&self, response: &ChatResponse) -> Verdict {
        if response.tool_calls().next().is_some() {
            return Verdict::Fits;
        }
        let text = response.text();
        let whole = match serde_json::from_str::<Value>(&text) {
            Ok(value) => self.misfits(&value),
            Err(error) => vec![format!("it is not JSON: {error}")],
        };
        if whole.is_empty() {
            return Verdict::Fits;
        }
        match inner(&text).filter(|inner| {
            let value = serde_json::from_str::<Value>(inner);
            value.is_ok_and(|value| self.misfits(&value).is_empty())
        }) {
            Some(inner) => Verdict::FitsAs(String::from(inner)),
            None => Verdict::Misfit(whole),
        }
    }

    fn misfits(&self, value: &Value) -> Vec<String> {
        self.validator
            .iter_errors(value)
            .take(limits::SCHEMA_ERRORS_MAX)
            .map(|error| format!("{}: {}", error.instance_path(), error.masked()))
            .collect()
    }
}

/// The JSON inside a text that says more: from its first bracket to its last.
fn inner(text: &str) -> Option<&str> {
    let from = text.find(['{', '['])?;
    let to = text.rfind(['}', ']'])?;
    text.get(from..=to)
}

/// The same answer with another text.
pub(super) fn replace_text(response: &mut ChatResponse, text: String) {
    response.parts.retain(|part| part.as_text().is_none());
    response.parts.push(Part::text(text));
}

/// The question again, after an answer that did not fit.
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
    use ir::{ChatRequest, ChatResponse, Part, ResponseFormat};
    use serde_json::json;

    use super::{SchemaCheck, Verdict};

    fn judge(text: &str) -> Verdict {
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
        SchemaCheck::of(&chat).unwrap().unwrap().judge(&response)
    }

    #[test]
    fn text_around_json_is_told_from_json_that_is_wrong() {
        assert_eq!(judge(r#"{"n": 3}"#), Verdict::Fits);
        assert_eq!(
            judge("Sure!\n```json\n{\"n\": 3}\n```"),
            Verdict::FitsAs(String::from(r#"{"n": 3}"#))
        );
        for text in [r#"{"n": "3"}"#, "{}", "[]", "", "no", r#"{"n": 3"#] {
            assert!(matches!(judge(text), Verdict::Misfit(_)), "{text}");
        }
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_the_callers_mistake() {
        let chat = ChatRequest {
            response_format: Some(ResponseFormat::JsonSchema {
                name: None,
                description: None,
                schema: json!({"$ref": "https://elsewhere.example/schema.json"}).into(),
                strict: None,
            }),
            ..ChatRequest::default()
        };
        assert!(SchemaCheck::of(&chat).is_err());
    }
}

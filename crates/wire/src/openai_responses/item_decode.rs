//! Decodes items that are not messages: calls, their results, reasoning. The same in requests and responses.

use ir::{
    Ext, Fields, Part, PartBody, Reasoning, ReasoningForm, ReasoningOrigin, Role, ToolCall, ToolResult,
};
use serde_json::Value;

use crate::openai_responses::{OWN, content};

/// Note on a part that is a separate item.
pub(super) const ITEM: &str = "$item";

/// An item that is not a message. An unknown item is preserved completely.
pub(super) fn decode(value: Value) -> Part {
    let Some(mut fields) = Fields::of(value.clone()) else {
        return unknown(value);
    };
    match fields.string("type").as_deref() {
        Some("function_call") => call(fields).unwrap_or_else(|| unknown(value)),
        Some("function_call_output") => result(fields).unwrap_or_else(|| unknown(value)),
        Some("reasoning") => reasoning(value),
        _ => unknown(value),
    }
}

pub(super) fn unknown(raw: Value) -> Part {
    let mut part = Part::from(PartBody::Unknown {
        dialect: String::from(OWN.as_str()),
        raw,
    });
    part.ext.set(OWN, ITEM, true);
    part
}

/// Item ids and states exist only in this dialect; they are preserved as notes.
pub(super) fn bookkeeping(fields: &mut Fields, ext: &mut Ext) {
    for key in ["id", "status"] {
        if let Some(value) = fields.take(key) {
            ext.set(OWN, if key == "id" { "$id" } else { "$status" }, value);
        }
    }
}

fn call(mut fields: Fields) -> Option<Part> {
    let (id, name, raw) = (
        fields.string("call_id")?,
        fields.string("name")?,
        fields.string("arguments")?,
    );
    let mut part = Part::from(PartBody::ToolCall(ToolCall::new(id, name, raw)));
    bookkeeping(&mut fields, &mut part.ext);
    part.ext.extend(OWN, fields.rest());
    Some(part)
}

fn result(mut fields: Fields) -> Option<Part> {
    let call_id = fields.string("call_id")?;
    let mut ext = Ext::default();
    let content = match fields.take("output")? {
        Value::String(text) => vec![Part::text(text)],
        Value::Array(list) => {
            ext.set(OWN, "$output", "parts");
            list.into_iter()
                .map(|part| content::decode(part, Role::User))
                .collect()
        }
        _ => return None,
    };
    let body = PartBody::ToolResult(ToolResult {
        call_id,
        content,
        ..ToolResult::default()
    });
    let mut part = Part {
        body,
        cache: None,
        ext,
    };
    bookkeeping(&mut fields, &mut part.ext);
    part.ext.extend(OWN, fields.rest());
    Some(part)
}

/// Reasoning as text and sealed. The item is noted, so that it is restored unchanged.
pub(super) fn reasoning(value: Value) -> Part {
    let texts = |key: &str| -> Option<String> {
        let list = value.get(key)?.as_array()?;
        let texts: Vec<&str> = list
            .iter()
            .filter_map(|item| item.get("text")?.as_str())
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    };
    let whole = texts("content");
    let form = if whole.is_some() {
        ReasoningForm::Text
    } else {
        ReasoningForm::Summary
    };
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(String::from);
    let reasoning = Reasoning {
        form,
        id: text("id"),
        text: whole.or_else(|| texts("summary")),
        data: text("encrypted_content"),
        signature: None,
        origin: Some(ReasoningOrigin::dialect(OWN)),
    };
    let mut part = Part::from(PartBody::Reasoning(reasoning));
    part.ext.set(OWN, "$raw", value);
    part
}

//! Encodes items that are not messages.

use ir::{
    Action, Error, Ext, Ledger, Map, Part, PartBody, Reasoning, ReasoningForm, ReasoningOrigin, Role,
    ToolOutcome, ToolResult,
};
use serde_json::{Value, json};

use crate::openai_responses::content::object;
use crate::openai_responses::item_decode::ITEM;
use crate::openai_responses::{OWN, content};

/// Whether reasoning is sent back to the model in a request or returned to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Replay,
    Show,
}

/// The encoded form of a part.
pub(super) enum EncodedPart {
    /// A separate item.
    Item(Value),
    /// A part of a message.
    Content(Value),
    /// Nothing: the part was recorded as a loss.
    Nothing,
}

pub(super) fn encode(
    part: &Part,
    role: Role,
    purpose: Purpose,
    pointer: &str,
    ledger: &mut Ledger,
) -> Result<EncodedPart, Error> {
    let mut map = match &part.body {
        PartBody::Unknown { dialect, raw }
            if dialect == OWN.as_str() && part.ext.value(OWN, ITEM).is_some() =>
        {
            return Ok(EncodedPart::Item(raw.clone()));
        }
        PartBody::ToolCall(call) => object(json!({
            "type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments_raw,
        })),
        PartBody::ToolResult(result) => encode_result(result, part, pointer, ledger)?,
        PartBody::Reasoning(reasoning) => {
            ledger.foreign(pointer, &part.ext, OWN);
            return Ok(encode_reasoning(reasoning, part, purpose, pointer, ledger)
                .map_or(EncodedPart::Nothing, EncodedPart::Item));
        }
        _ => {
            let content = content::encode(part, role, pointer, ledger)?;
            return Ok(content.map_or(EncodedPart::Nothing, EncodedPart::Content));
        }
    };
    put_bookkeeping(&part.ext, &mut map);
    if part.cache.is_some() {
        ledger.dropped(format!("{pointer}/cache"), format!("{OWN} caches automatically"));
    }
    part.ext.restore(OWN, &mut map);
    ledger.foreign(pointer, &part.ext, OWN);
    Ok(EncodedPart::Item(Value::Object(map)))
}

pub(super) fn put_bookkeeping(ext: &Ext, map: &mut Map) {
    for (note, key) in [("$id", "id"), ("$status", "status")] {
        if let Some(value) = ext.value(OWN, note) {
            map.insert(String::from(key), value.clone());
        }
    }
}

fn encode_result(result: &ToolResult, part: &Part, pointer: &str, ledger: &mut Ledger) -> Result<Map, Error> {
    let as_parts = part.ext.note(OWN, "$output") == Some("parts");
    let output = match result.content.as_slice() {
        [only] if !as_parts && only.plain_text().is_some() => json!(only.plain_text()),
        [] if !as_parts => json!(""),
        list => {
            let mut parts = Vec::new();
            for (at, inner) in list.iter().enumerate() {
                parts.extend(content::encode(
                    inner,
                    Role::User,
                    &format!("{pointer}/content/{at}"),
                    ledger,
                )?);
            }
            Value::Array(parts)
        }
    };
    if result.outcome != ToolOutcome::Success {
        ledger.dropped(format!("{pointer}/outcome"), format!("not supported by {OWN}"));
    }
    Ok(object(
        json!({"type": "function_call_output", "call_id": result.call_id, "output": output}),
    ))
}

fn encode_reasoning(
    reasoning: &Reasoning,
    part: &Part,
    purpose: Purpose,
    pointer: &str,
    ledger: &mut Ledger,
) -> Option<Value> {
    let own = reasoning.replays_to(&ReasoningOrigin::dialect(OWN));
    if purpose == Purpose::Replay && !own {
        ledger.dropped(pointer, "reasoning is sent only to its original dialect");
        return None;
    }
    if let Some(raw) = part.ext.value(OWN, "$raw") {
        return Some(raw.clone());
    }
    let mut map = object(json!({"type": "reasoning"}));
    map.insert(
        String::from("id"),
        json!(reasoning.id.as_deref().unwrap_or("rs_0")),
    );
    let text = reasoning.text.as_deref().unwrap_or_default();
    let kind = if reasoning.form == ReasoningForm::Summary {
        "summary_text"
    } else {
        "reasoning_text"
    };
    let list = if text.is_empty() {
        json!([])
    } else {
        json!([{"type": kind, "text": text}])
    };
    if reasoning.form == ReasoningForm::Summary {
        map.insert(String::from("summary"), list);
    } else {
        map.insert(String::from("summary"), json!([]));
        map.insert(String::from("content"), list);
    }
    match &reasoning.data {
        Some(data) if own => {
            map.insert(String::from("encrypted_content"), json!(data));
        }
        Some(_) => ledger.dropped(
            format!("{pointer}/data"),
            "sealed reasoning is sent only to its original dialect",
        ),
        None => {}
    }
    if reasoning.signature.is_some() {
        ledger.note(
            format!("{pointer}/signature"),
            Action::Dropped,
            format!("not supported by {OWN}"),
        );
    }
    Some(Value::Object(map))
}

//! The envelope of a reply without a readable answer.

use serde_json::{Map, Value};

use super::Envelope;
use super::check::refuse;
use super::error::ErrorBody;
use super::reply::{Reason, Unreadable};
use crate::code::Code;
use crate::limits;
use crate::module::Module;

pub(super) fn refuse_unreadable(module: &Module, unreadable: Unreadable) -> Envelope {
    let (name, message) = match unreadable.reason {
        Reason::Empty => ("empty", String::from("the reply is empty")),
        Reason::TooLarge => {
            let message = format!("the reply is larger than {} bytes", limits::REPLY_BYTES_MAX);
            ("too_large", message)
        }
        Reason::InvalidUtf8 => ("invalid_utf8", String::from("the reply is not UTF-8 text")),
        Reason::NoJson => ("no_json", String::from("no JSON object found in the reply")),
        Reason::Malformed => ("malformed", String::from("the reply's JSON is malformed")),
        Reason::Truncated => (
            "truncated",
            String::from("the reply ends before its JSON is complete"),
        ),
        Reason::Nesting => {
            let message = format!("the reply is nested deeper than {} levels", limits::NESTING_MAX);
            ("nesting", message)
        }
        Reason::NotAnObject(kind) => ("not_an_object", format!("the reply is {kind}, not an object")),
    };
    let code = match unreadable.reason {
        Reason::NotAnObject(_) => Code::E3001,
        _ => Code::E1000,
    };
    let mut error = ErrorBody::new(code, message)
        .detail("stage", "output")
        .detail("reason", name);
    if let Some(offset) = unreadable.offset {
        error = error.detail("offset", offset);
    }
    if unreadable.reason == Reason::Truncated {
        error = error
            .suggest("raise the back-end's output limit or request a shorter answer, then run again")
            .detail("truncated", true);
    }
    let salvaged = unreadable.salvaged.and_then(salvaged_data);
    refuse(module, error, salvaged, Map::new())
}

/// The data of a salvaged object: that of an envelope, or the bare object itself.
fn salvaged_data(mut object: Map<String, Value>) -> Option<Map<String, Value>> {
    let is_envelope = object.contains_key("ok") || object.get("meta").is_some_and(Value::is_object);
    if !is_envelope {
        return Some(object);
    }
    match object
        .shift_remove("data")
        .or_else(|| object.shift_remove("partial_data"))
    {
        Some(Value::Object(data)) => Some(data),
        _ => None,
    }
}

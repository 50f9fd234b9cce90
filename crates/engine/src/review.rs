//! Checks data that a reviewer edited: it must be a valid answer of the module.

use module::envelope::{CheckOptions, ErrorBody, check_reply};
use module::{Code, Module};
use serde_json::{Map, Value, json};

use crate::port::EncodedEvent;
use crate::run::envelope;

/// Checks edited data against the whole contract, with the meta of the run's terminal event.
pub fn admit_edit(
    module: &Module,
    last: Option<&EncodedEvent>,
    data: &Map<String, Value>,
) -> Result<(), Box<ErrorBody>> {
    let meta = last.map(envelope).map(|mut envelope| envelope["meta"].take());
    let meta = meta.filter(Value::is_object);
    let meta = meta.unwrap_or_else(|| json!({"confidence": 1, "risk": "none", "explain": "edited"}));
    let reply = json!({"ok": true, "meta": meta, "data": data});
    let outcome = check_reply(module, reply.to_string().as_bytes(), &CheckOptions::default());
    match outcome.envelope.error() {
        None => Ok(()),
        Some(error) => Err(Box::new(
            ErrorBody::new(
                Code::E1001,
                format!("the edited data does not fit the module: {}", error.message),
            )
            .detail("code", error.code.as_str())
            .detail("violations", Value::from_iter(error.details.clone())),
        )),
    }
}

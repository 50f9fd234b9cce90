//! Incoming context: filters `_context` by the types and forms that a module accepts.

use serde_json::{Map, Value};

use super::sanitise::sanitise;
use super::{CONTEXT_KEY, violations};
use crate::code::Code;
use crate::envelope::ErrorBody;
use crate::manifest::ContextAccept;
use crate::module::Module;
use crate::schema::{Section, resolve};

/// Context that a model may receive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AcceptedContext {
    pub context: Map<String, Value>,
    /// Received types that the module does not declare.
    pub left_out: Vec<String>,
}

/// Filters the context of an input by the module's declaration: undeclared types are dropped; a missing
/// required type and a value that violates its schema are errors. Conversations are cut to the latest turns,
/// objects to the declared fields; secrets are redacted.
pub fn admit(module: &Module, input: &Map<String, Value>) -> Result<AcceptedContext, Box<ErrorBody>> {
    let empty = Map::new();
    let given = match input.get(CONTEXT_KEY) {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(given)) => given,
        Some(_) => {
            let error = ErrorBody::new(Code::E1003, "`_context` must be an object");
            return Err(Box::new(
                error.detail("stage", "input").detail("pointer", "/_context"),
            ));
        }
    };
    let by_schema = match given.is_empty() {
        true => Vec::new(),
        false => types_of_schema(module),
    };
    let mut admitted = AcceptedContext::default();
    for (kind, value) in given {
        let accept = module
            .manifest
            .context
            .accepts
            .iter()
            .find(|accept| accept.kind == *kind);
        match accept {
            Some(accept) => {
                let value = trimmed(accept, value);
                check(module, accept, &value)?;
                admitted.context.insert(kind.clone(), sanitise(value));
            }
            None if by_schema.contains(kind) => {
                admitted.context.insert(kind.clone(), sanitise(value.clone()));
            }
            None => admitted.left_out.push(kind.clone()),
        }
    }
    let accepts = module.manifest.context.accepts.iter();
    let missing = accepts
        .filter(|accept| accept.required)
        .find(|accept| !given.contains_key(&accept.kind));
    if let Some(missing) = missing {
        let message = format!("the module requires the context `{}`", missing.kind);
        let error = ErrorBody::new(Code::E1002, message)
            .suggest(format!("send it as `_context.{}`", missing.kind))
            .detail("stage", "input");
        return Err(Box::new(
            error.detail("pointer", format!("/_context/{}", missing.kind)),
        ));
    }
    Ok(admitted)
}

fn trimmed(accept: &ContextAccept, value: &Value) -> Value {
    match (value, accept.max_turns, &accept.fields) {
        (Value::Array(turns), Some(max), _) => {
            let max = usize::try_from(max).unwrap_or(usize::MAX);
            let first = turns.len().saturating_sub(max);
            Value::Array(turns.get(first..).unwrap_or_default().to_vec())
        }
        (Value::Object(map), _, Some(fields)) => {
            let kept = map.iter().filter(|(key, _)| fields.contains(key));
            Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        (value, _, _) => value.clone(),
    }
}

fn check(module: &Module, accept: &ContextAccept, value: &Value) -> Result<(), Box<ErrorBody>> {
    let Some(reference) = &accept.schema else {
        return Ok(());
    };
    match violations(module, reference, value).first() {
        None => Ok(()),
        Some(first) => {
            let pointer = format!("/_context/{}{}", accept.kind, first.pointer);
            let message = format!("{pointer}: {}", first.message);
            let error = ErrorBody::new(Code::E1001, message).detail("stage", "input");
            Err(Box::new(error.detail("pointer", pointer)))
        }
    }
}

/// Types that the input schema declares under `_context`.
fn types_of_schema(module: &Module) -> Vec<String> {
    let document = module.contract.document();
    let under = |schema: &Value, key: &str| -> Option<Value> {
        let properties = resolve(document, schema).get("properties")?.get(key)?;
        Some(resolve(document, properties).clone())
    };
    let context = module
        .contract
        .schema(Section::Input)
        .and_then(|schema| under(schema, CONTEXT_KEY));
    let Some(Value::Object(properties)) = context.and_then(|context| context.get("properties").cloned())
    else {
        return Vec::new();
    };
    properties.into_iter().map(|(kind, _)| kind).collect()
}

//! A model's own failure. Its error is accepted if it has a code and a message and matches the module's error
//! schema; otherwise the answer fails as invalid, with the model's error in the details. Registered, legacy
//! and module-specific codes are kept (a legacy name becomes its number only if the module's schema accepts
//! nothing else); any other code is moved to `details.module_code` and replaced by E2004.

use serde_json::{Map, Value};

use super::error::ErrorBody;
use super::meta::{Meta, Risk};
use super::repair::{RepairDefaults, repair_meta};
use super::repair_log::{Action, RepairLog};
use super::schema_errors::{answer_error, check_section};
use super::small_map::member_mut;
use super::structure::{ShapeViolation, check_error, kind};
use super::wrap::EnvelopeParts;
use super::{Envelope, EnvelopeBody};
use crate::code::{Code, is_module_specific};
use crate::limits;
use crate::module::Module;
use crate::schema::Section;

pub(super) fn check_failure(module: &Module, parts: EnvelopeParts, repairs: &mut RepairLog) -> Envelope {
    let mut found = parts.violations;
    let mut partial = partial_data(module, parts.partial_data, repairs, &mut found);
    if let Some(data) = parts.data {
        let message = "a failure must not have data; return unfinished work in partial_data";
        found.push(ShapeViolation::new("/data", "additionalProperties", message));
        if let (None, Value::Object(data)) = (&partial, data) {
            partial = module.manifest.failure.partial_allowed.then_some(data);
        }
    }
    let mut error = parts.error;
    if let (true, Some(Value::String(text))) = (parts.wrapped, &mut error) {
        // Older answers often have only a message.
        let body = ErrorBody::new(Code::E2004, std::mem::take(text));
        error = Some(Value::Object(body.into_map()));
    }
    let checked = check_error_part(module, error.as_mut(), repairs, &mut found);
    let message = error
        .as_ref()
        .and_then(|error| error.get("message"))
        .and_then(Value::as_str);
    let basis = RepairDefaults {
        tier: module.manifest.tier,
        confidence: Value::from(0.0),
        risk: Risk::High,
        explain: message,
        explain_chars: limits::EXPLAIN_CHARS_MAX,
    };
    let mut meta = repair_meta(parts.meta, basis, repairs, &mut found);
    replace_custom_risk(&mut meta, repairs);
    let failed = match checked {
        Err(broken) => Some(*broken),
        Ok(()) if !found.is_empty() => Some(answer_error(&found)),
        Ok(()) => None,
    };
    let envelope = match (failed, error) {
        (Some(failed), error) => {
            repairs.drop_meta_entries();
            Envelope::failure(match error {
                Some(original) => failed.detail("module_error", original),
                None => failed,
            })
        }
        (None, error) => {
            let map = match error {
                Some(Value::Object(map)) => map,
                _ => Map::new(),
            };
            let mut envelope = Envelope::failure(settle_code(module, ErrorBody::from_map(map)));
            envelope.meta = Meta::from_map(meta);
            envelope
        }
    };
    with_partial(envelope, partial, parts.annotations)
}

pub(super) fn with_partial(
    mut envelope: Envelope,
    partial: Option<Map<String, Value>>,
    annotations: Map<String, Value>,
) -> Envelope {
    if let EnvelopeBody::Failure { partial_data, .. } = &mut envelope.body {
        *partial_data = partial.filter(|partial| !partial.is_empty());
    }
    envelope.annotations = annotations;
    envelope
}

/// The envelope's risk is one of four levels; a module's custom risk is treated as high and kept in
/// `risk_custom`.
pub(super) fn replace_custom_risk(meta: &mut Map<String, Value>, repairs: &mut RepairLog) {
    if let Some(risk @ Value::Object(_)) = member_mut(meta, "risk") {
        let custom = std::mem::replace(risk, Value::from(Risk::High.as_str()));
        let after = Value::from(Risk::High.as_str());
        repairs.record("/meta/risk", Action::Replaced, Some(custom.clone()), Some(after));
        meta.insert(String::from("risk_custom"), custom);
    }
}

fn partial_data(
    module: &Module,
    given: Option<Value>,
    repairs: &mut RepairLog,
    found: &mut Vec<ShapeViolation>,
) -> Option<Map<String, Value>> {
    match given? {
        Value::Object(partial) if module.manifest.failure.partial_allowed => Some(partial),
        Value::Object(_) => {
            // The module allows no partial data, so the repair log must not contain it either.
            repairs.record("/partial_data", Action::Removed, None, None);
            None
        }
        other => {
            let message = format!("must be an object, not {}", kind(&other));
            found.push(ShapeViolation::new("/partial_data", "type", message));
            None
        }
    }
}

fn check_error_part(
    module: &Module,
    error: Option<&mut Value>,
    repairs: &mut RepairLog,
    found: &mut Vec<ShapeViolation>,
) -> Result<(), Box<ErrorBody>> {
    let Some(error) = error else {
        let message = "`error` is missing from a failure";
        found.push(ShapeViolation::new("", "required", message));
        return Ok(());
    };
    let Value::Object(map) = error else {
        let message = format!("must be an object, not {}", kind(error));
        found.push(ShapeViolation::new("/error", "type", message));
        return Ok(());
    };
    check_error(map, found);
    if !module.manifest.failure.must_return_error_schema {
        return Ok(());
    }
    let mut broken = error_violations(module, error)?;
    if broken.iter().any(|violation| violation.pointer == "/error/code") {
        // A schema may list codes by number while the model still uses the older name.
        broken = retry_with_number(module, error, broken, repairs)?;
    }
    let is_listed = |new: &ShapeViolation| {
        found
            .iter()
            .any(|old| (&old.pointer, &old.keyword) == (&new.pointer, &new.keyword))
    };
    broken.retain(|violation| !is_listed(violation));
    found.append(&mut broken);
    Ok(())
}

fn error_violations(module: &Module, error: &Value) -> Result<Vec<ShapeViolation>, Box<ErrorBody>> {
    let mut found = Vec::new();
    check_section(module.answer_contract(), Section::Error, error, &mut found)?;
    // Any keyword that a module's error violates is a shape error of the answer.
    for violation in &mut found {
        violation.code = Code::E3001;
    }
    Ok(found)
}

fn retry_with_number(
    module: &Module,
    error: &mut Value,
    broken: Vec<ShapeViolation>,
    repairs: &mut RepairLog,
) -> Result<Vec<ShapeViolation>, Box<ErrorBody>> {
    let number = error
        .get("code")
        .and_then(Value::as_str)
        .and_then(Code::find)
        .filter(|code| !code.is_warning());
    let (Some(number), Value::Object(map)) = (number, &mut *error) else {
        return Ok(broken);
    };
    let after = Value::from(number.as_str());
    let before = map.insert(String::from("code"), after.clone());
    let again = error_violations(module, error)?;
    if again.is_empty() {
        repairs.record("/error/code", Action::Normalised, before, Some(after));
        return Ok(again);
    }
    if let (Value::Object(map), Some(before)) = (error, before) {
        map.insert(String::from("code"), before);
    }
    Ok(broken)
}

fn settle_code(module: &Module, mut error: ErrorBody) -> ErrorBody {
    let known = Code::find(&error.code).is_some_and(|code| !code.is_warning())
        || is_module_specific(&error.code)
        || module.manifest.error_codes.contains_key(&error.code);
    if !known {
        if let Some(odd) = error.more.shift_remove("details") {
            error = error.detail("value", odd);
        }
        let original = std::mem::replace(&mut error.code, String::from(Code::E2004.as_str()));
        error = error.detail("module_code", original);
    }
    if error.suggestion.is_none() {
        let suggestion = match module.manifest.error_codes.get(&error.code) {
            Some(meaning) => format!("{}: {meaning}; change the input accordingly", error.code),
            None => String::from("see error.message; change the input accordingly, then run again"),
        };
        error.suggestion = Some(suggestion);
    }
    error
}

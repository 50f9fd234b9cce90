//! Splits an object into the parts of an envelope. Objects that already are envelopes are split as they are;
//! answers of older formats (`{ok, data}` without meta, or the bare data) are wrapped if the module allows
//! it. Data is not changed.

use serde_json::{Map, Value};

use super::repair_log::{Action, RepairLog};
use super::small_map::member;
use super::structure::{ShapeViolation, check_closed, kind};
use crate::module::Module;

/// The parts of an answer before validation.
#[derive(Debug, Default)]
pub(super) struct EnvelopeParts {
    pub(super) ok: bool,
    /// An older answer, whose data may contain fields that belong in meta.
    pub(super) wrapped: bool,
    pub(super) meta: Option<Value>,
    pub(super) data: Option<Value>,
    pub(super) error: Option<Value>,
    pub(super) partial_data: Option<Value>,
    pub(super) annotations: Map<String, Value>,
    /// Violations at the top level.
    pub(super) violations: Vec<ShapeViolation>,
}

/// Whether answers without `meta`, or without an envelope, are wrapped for this module. Formats before the
/// separation of meta and data have only such answers.
pub(super) fn wraps(module: &Module) -> bool {
    let compat = &module.manifest.compat;
    compat.accepts_v21_payload || compat.runtime_auto_wrap || !module.format.separates_meta()
}

/// An object that is not an envelope and may not be wrapped.
#[derive(Debug)]
pub(super) struct NotAnEnvelope {
    pub(super) violation: ShapeViolation,
    /// The part of it that is most likely the data.
    pub(super) data: Map<String, Value>,
}

pub(super) fn split_parts(
    object: Map<String, Value>,
    wraps: bool,
    repairs: &mut RepairLog,
) -> Result<EnvelopeParts, Box<NotAnEnvelope>> {
    let has = |key: &str| member(&object, key).is_some_and(|value| !value.is_null());
    let has_parts = has("meta") || has("data") || has("error");
    match member(&object, "ok") {
        Some(Value::Bool(ok)) => {
            let ok = *ok;
            if has_parts || !wraps || !ok {
                let lacks_meta = !has("meta");
                let mut parts = split(object, ok, repairs);
                if lacks_meta && wraps {
                    parts.wrapped = true;
                    repairs.record("", Action::Wrapped, None, None);
                }
                return Ok(parts);
            }
            let mut data = object;
            data.shift_remove("ok");
            Ok(wrap_bare(data, repairs))
        }
        None if wraps && has("error") => Ok(wrap_failure(object, repairs)),
        None if wraps && has("data") && object.keys().all(|key| is_envelope_key(key)) => {
            let mut parts = split(object, true, repairs);
            parts.wrapped = true;
            repairs.record("", Action::Wrapped, None, None);
            Ok(parts)
        }
        // A data field that happens to be called `ok`.
        Some(_) if wraps && !has_parts => Ok(wrap_bare(object, repairs)),
        None if wraps => Ok(wrap_bare(object, repairs)),
        other => {
            let violation = match other {
                Some(other) => ShapeViolation::new(
                    "/ok",
                    "type",
                    format!("must be true or false, not {}", kind(other)),
                ),
                None => ShapeViolation::new("", "required", "`ok` is missing: this is not an envelope"),
            };
            Err(refuse(object, violation))
        }
    }
}

fn is_envelope_key(key: &str) -> bool {
    matches!(key, "ok" | "meta" | "data" | "error" | "partial_data" | "version") || key.starts_with('_')
}

fn split(object: Map<String, Value>, ok: bool, repairs: &mut RepairLog) -> EnvelopeParts {
    let mut parts = EnvelopeParts {
        ok,
        ..EnvelopeParts::default()
    };
    let known = ["ok", "version", "meta", "data", "error", "partial_data"];
    check_closed(&object, &known, &mut parts.violations);
    for (key, value) in object {
        match key.as_str() {
            "ok" | "version" => {}
            "meta" => parts.meta = Some(value),
            // Null where no value is allowed is treated as absent.
            "data" if !ok && value.is_null() => repairs.record("/data", Action::Removed, Some(value), None),
            "error" if ok && value.is_null() => repairs.record("/error", Action::Removed, Some(value), None),
            "partial_data" if value.is_null() => {
                repairs.record("/partial_data", Action::Removed, Some(value), None);
            }
            "data" => parts.data = Some(value),
            "error" => parts.error = Some(value),
            "partial_data" => parts.partial_data = Some(value),
            // Usage and warnings are set by the runtime only.
            "_usage" | "_warnings" => {
                repairs.record(format!("/{key}"), Action::Removed, Some(value), None);
            }
            _ if key.starts_with('_') => {
                parts.annotations.insert(key, value);
            }
            _ => {}
        }
    }
    parts
}

fn wrap_bare(data: Map<String, Value>, repairs: &mut RepairLog) -> EnvelopeParts {
    repairs.record("", Action::Wrapped, None, None);
    EnvelopeParts {
        ok: true,
        wrapped: true,
        data: Some(Value::Object(data)),
        ..EnvelopeParts::default()
    }
}

/// A bare object with an error. Its other fields are the completed part of the work.
fn wrap_failure(object: Map<String, Value>, repairs: &mut RepairLog) -> EnvelopeParts {
    repairs.record("", Action::Wrapped, None, None);
    let mut parts = EnvelopeParts {
        wrapped: true,
        ..EnvelopeParts::default()
    };
    let mut rest = Map::new();
    for (key, value) in object {
        match key.as_str() {
            "error" => parts.error = Some(value),
            "meta" if value.is_object() => parts.meta = Some(value),
            "partial_data" if value.is_object() => parts.partial_data = Some(value),
            _ => {
                rest.insert(key, value);
            }
        }
    }
    if parts.partial_data.is_none() && !rest.is_empty() {
        parts.partial_data = Some(Value::Object(rest));
    }
    parts
}

/// Not an envelope and not wrapped: the object is kept as salvageable data.
fn refuse(mut object: Map<String, Value>, violation: ShapeViolation) -> Box<NotAnEnvelope> {
    let data = match object.swap_remove("data") {
        Some(Value::Object(data)) => data,
        Some(other) => {
            object.insert(String::from("data"), other);
            object
        }
        None => object,
    };
    Box::new(NotAnEnvelope { violation, data })
}

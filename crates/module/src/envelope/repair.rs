//! The repair of meta, the only part that is repaired: strings are trimmed, missing fields get a conservative
//! default, an explanation that is too long is truncated, a confidence outside its range is clamped (never
//! for tier exec, where an invalid number must not become valid). Types are never changed and no risk level
//! is derived from another word; a field that cannot be repaired is a violation.

use serde_json::{Map, Value};

use super::meta::Risk;
use super::repair_log::{Action, RepairLog};
use super::small_map::{member, member_mut};
use super::structure::{ShapeViolation, exceeds, kind};
use crate::limits;
use crate::manifest::Tier;

/// Fields that only the runtime may set.
const RUNTIME_FIELDS: [&str; 7] = [
    "model",
    "processing_time_ms",
    "latency_ms",
    "trace_id",
    "media_processed",
    "media_validation",
    "repairs",
];

/// The sources of default values.
#[derive(Debug)]
pub(super) struct RepairDefaults<'a> {
    pub(super) tier: Tier,
    /// The confidence in the data of an older answer, or the default.
    pub(super) confidence: Value,
    pub(super) risk: Risk,
    /// The source of a missing explanation, and the maximum length taken from it.
    pub(super) explain: Option<&'a str>,
    pub(super) explain_chars: usize,
}

/// Repairs meta; problems that cannot be repaired are added to `found`.
pub(super) fn repair_meta(
    meta: Option<Value>,
    basis: RepairDefaults<'_>,
    repairs: &mut RepairLog,
    found: &mut Vec<ShapeViolation>,
) -> Map<String, Value> {
    let mut meta = match meta {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(meta)) => meta,
        Some(other) => {
            let message = format!("must be an object, not {}", kind(&other));
            found.push(ShapeViolation::new("/meta", "type", message));
            return Map::new();
        }
    };
    // Comparing the few existing keys is cheaper than looking up each of the runtime fields.
    if meta.keys().any(|key| RUNTIME_FIELDS.contains(&key.as_str())) {
        for field in RUNTIME_FIELDS {
            if let Some(claimed) = meta.shift_remove(field) {
                repairs.record(format!("/meta/{field}"), Action::Removed, Some(claimed), None);
            }
        }
    }
    let explain = basis
        .explain
        .map(|text| first_chars(text.trim(), basis.explain_chars))
        .filter(|text| !text.is_empty())
        .unwrap_or("No explanation provided");
    fill(&mut meta, "confidence", || basis.confidence, repairs);
    fill(&mut meta, "risk", || Value::from(basis.risk.as_str()), repairs);
    fill(&mut meta, "explain", || Value::from(explain), repairs);
    repair_confidence(&mut meta, basis.tier, repairs, found);
    repair_risk(&mut meta, repairs, found);
    repair_explain(&mut meta, repairs, found);
    meta
}

fn fill(
    meta: &mut Map<String, Value>,
    field: &str,
    default: impl FnOnce() -> Value,
    repairs: &mut RepairLog,
) {
    let before = match member(meta, field) {
        None => None,
        Some(Value::Null) => Some(Value::Null),
        Some(_) => return,
    };
    let value = default();
    repairs.record(
        format!("/meta/{field}"),
        Action::Filled,
        before,
        Some(value.clone()),
    );
    meta.insert(String::from(field), value);
}

fn repair_confidence(
    meta: &mut Map<String, Value>,
    tier: Tier,
    repairs: &mut RepairLog,
    found: &mut Vec<ShapeViolation>,
) {
    let Some(confidence) = member_mut(meta, "confidence") else {
        return;
    };
    let Some(number) = confidence.as_f64() else {
        let message = format!("must be a number, not {}", kind(confidence));
        found.push(ShapeViolation::new("/meta/confidence", "type", message));
        return;
    };
    if (0.0..=1.0).contains(&number) {
        return;
    }
    if tier == Tier::Exec {
        let message = format!("must be between 0 and 1, not {confidence}; it is not repaired for tier exec");
        let keyword = if number < 0.0 { "minimum" } else { "maximum" };
        found.push(ShapeViolation::new("/meta/confidence", keyword, message));
        return;
    }
    let clamped = Value::from(number.clamp(0.0, 1.0));
    let before = std::mem::replace(confidence, clamped.clone());
    repairs.record("/meta/confidence", Action::Clamped, Some(before), Some(clamped));
}

/// A risk may also be an object that the module's own schema allows; the schema checks it.
fn repair_risk(meta: &mut Map<String, Value>, repairs: &mut RepairLog, found: &mut Vec<ShapeViolation>) {
    let wrong = match member_mut(meta, "risk") {
        Some(Value::String(risk)) => {
            if Risk::find(risk).is_some() {
                return;
            }
            match Risk::guess(risk) {
                Some(level) => {
                    let before = std::mem::replace(risk, String::from(level.as_str()));
                    let after = Some(Value::from(level.as_str()));
                    repairs.record(
                        "/meta/risk",
                        Action::Normalised,
                        Some(Value::String(before)),
                        after,
                    );
                    return;
                }
                None => ("enum", String::from("must be one of none, low, medium, high")),
            }
        }
        None | Some(Value::Object(_)) => return,
        Some(other) => ("type", format!("must be a string, not {}", kind(other))),
    };
    found.push(ShapeViolation::new("/meta/risk", wrong.0, wrong.1));
}

fn repair_explain(meta: &mut Map<String, Value>, repairs: &mut RepairLog, found: &mut Vec<ShapeViolation>) {
    let Some(explain) = member_mut(meta, "explain") else {
        return;
    };
    let Value::String(text) = explain else {
        let message = format!("must be a string, not {}", kind(explain));
        found.push(ShapeViolation::new("/meta/explain", "type", message));
        return;
    };
    let trimmed = text.trim();
    let (after, action) = if exceeds(trimmed, limits::EXPLAIN_CHARS_MAX) {
        (truncate(trimmed), Action::Truncated)
    } else if trimmed.len() != text.len() {
        (String::from(trimmed), Action::Normalised)
    } else {
        return;
    };
    let before = std::mem::replace(text, after.clone());
    repairs.record(
        "/meta/explain",
        action,
        Some(Value::String(before)),
        Some(Value::String(after)),
    );
}

/// At most [`limits::EXPLAIN_CHARS_MAX`] code points, including an ellipsis if the text was truncated.
pub(super) fn truncate(text: &str) -> String {
    if !exceeds(text, limits::EXPLAIN_CHARS_MAX) {
        return String::from(text);
    }
    let mut cut = String::from(first_chars(text, limits::EXPLAIN_CHARS_MAX - 3));
    cut.push_str("...");
    cut
}

fn first_chars(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((end, _)) => text.get(..end).unwrap_or(text),
        None => text,
    }
}

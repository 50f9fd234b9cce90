//! The repair of meta, and of meta alone: strings are trimmed, what is missing gets a conservative
//! default, an explanation that is too long is cut, a confidence outside its range is clamped (never for
//! tier exec, where a wrong number must not become a right one). Types are never changed and no risk
//! level is invented from another word; what cannot be repaired is a violation.

use serde_json::{Map, Value};

use super::small_map::{member, member_mut};
use super::meta::Risk;
use super::repair_log::{Action, RepairLog};
use super::structure::{ShapeViolation, exceeds, kind};
use crate::limits;
use crate::manifest::Tier;

/// What only the runtime may say about an answer.
const RUNTIME_FIELDS: [&str; 7] = [
    "model",
    "processing_time_ms",
    "latency_ms",
    "trace_id",
    "media_processed",
    "media_validation",
    "repairs",
];

/// What defaults are made of.
#[derive(Debug)]
pub(super) struct RepairDefaults<'a> {
    pub(super) tier: Tier,
    /// The confidence an older answer carries inside its data, or the default.
    pub(super) confidence: Value,
    pub(super) risk: Risk,
    /// The text an explanation may be taken from, and how much of it.
    pub(super) explain: Option<&'a str>,
    pub(super) explain_chars: usize,
}

/// The repaired meta, or everything that is beyond repair.
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
    // Comparing the few keys there are is cheaper than looking up the many that may not be.
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

fn fill(meta: &mut Map<String, Value>, field: &str, default: impl FnOnce() -> Value, repairs: &mut RepairLog) {
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
        let message =
            format!("must lie between 0 and 1, not at {confidence}; tier exec repairs nothing here");
        let keyword = if number < 0.0 { "minimum" } else { "maximum" };
        found.push(ShapeViolation::new("/meta/confidence", keyword, message));
        return;
    }
    let clamped = Value::from(number.clamp(0.0, 1.0));
    let before = std::mem::replace(confidence, clamped.clone());
    repairs.record("/meta/confidence", Action::Clamped, Some(before), Some(clamped));
}

/// A risk may also be the object that a module's own schema offers; that is for its schema to judge.
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

/// At most [`limits::EXPLAIN_CHARS_MAX`] code points, an ellipsis included when something was cut.
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

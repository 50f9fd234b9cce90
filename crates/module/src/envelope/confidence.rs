//! The optional confidence fields of meta: the scores of a generated image, the aggregation of the
//! confidences of several items, and the confidence of a transcript over time. They are checked if present
//! and are not changed.

use serde_json::{Map, Value, json};

use super::structure::{ShapeViolation, kind};
use crate::code::Code;
use crate::limits;

/// Largest accepted difference between a stated aggregate and the recomputed one: models round to two places.
const TOLERANCE: f64 = 0.0051;

pub(super) fn check_confidence_fields(meta: &Map<String, Value>, found: &mut Vec<ShapeViolation>) {
    // Confidence, risk and explanation are always present, so there is no other field among three.
    if meta.len() <= 3 {
        return;
    }
    if let Some(quality) = meta.get("generation_quality") {
        check_quality(quality, found);
    }
    match meta.get("confidence_aggregation") {
        None => {}
        Some(Value::String(method)) if matches!(method.as_str(), "mean" | "min" | "weighted_mean") => {}
        Some(_) => {
            let message = "must be one of mean, min, weighted_mean";
            found.push(ShapeViolation::new(
                "/meta/confidence_aggregation",
                "enum",
                message,
            ));
        }
    }
    if let Some(temporal) = meta.get("temporal_confidence") {
        check_temporal(temporal, found);
    }
}

fn check_quality(quality: &Value, found: &mut Vec<ShapeViolation>) {
    let at = "/meta/generation_quality";
    let Value::Object(quality) = quality else {
        found.push(not_an_object(at, quality));
        return;
    };
    for key in ["prompt_adherence", "aesthetic_score", "technical_quality"] {
        check_score(quality.get(key), || format!("{at}/{key}"), found);
    }
}

fn check_temporal(temporal: &Value, found: &mut Vec<ShapeViolation>) {
    let at = "/meta/temporal_confidence";
    let Value::Object(temporal) = temporal else {
        found.push(not_an_object(at, temporal));
        return;
    };
    check_score(temporal.get("overall"), || format!("{at}/overall"), found);
    for list in ["segments", "low_confidence_regions"] {
        let items = match temporal.get(list) {
            None => continue,
            Some(Value::Array(items)) => items,
            Some(other) => {
                let message = format!("must be an array, not {}", kind(other));
                found.push(ShapeViolation::new(format!("{at}/{list}"), "type", message));
                continue;
            }
        };
        for (index, item) in items.iter().enumerate() {
            let at = || format!("{at}/{list}/{index}");
            let time = |key: &str| item.get(key).and_then(Value::as_f64).filter(|time| *time >= 0.0);
            match (time("start_ms"), time("end_ms")) {
                (Some(start), Some(end)) if start <= end => {}
                _ => {
                    let message = "must have start_ms and end_ms, the end not before the start";
                    found.push(ShapeViolation::new(at(), "required", message));
                }
            }
            check_score(item.get("confidence"), || format!("{}/confidence", at()), found);
            if list == "segments" && item.get("confidence").is_none() {
                found.push(ShapeViolation::new(at(), "required", "`confidence` is missing"));
            }
        }
    }
}

fn check_score(score: Option<&Value>, pointer: impl Fn() -> String, found: &mut Vec<ShapeViolation>) {
    match score {
        None => {}
        Some(score) if score.as_f64().is_some_and(|score| (0.0..=1.0).contains(&score)) => {}
        Some(_) => {
            let message = "must be a number between 0 and 1";
            found.push(ShapeViolation::new(pointer(), "maximum", message));
        }
    }
}

fn not_an_object(pointer: &str, value: &Value) -> ShapeViolation {
    ShapeViolation::new(pointer, "type", format!("must be an object, not {}", kind(value)))
}

/// A warning if `meta.confidence` is not the aggregate of the items by `confidence_aggregation`. If the data
/// contains several lists of items with confidences, any of them may be the basis.
pub(super) fn check_aggregation(meta: &Map<String, Value>, data: &Map<String, Value>) -> Option<Value> {
    if meta.len() <= 3 {
        return None;
    }
    let method = meta.get("confidence_aggregation")?.as_str()?;
    let stated = meta.get("confidence")?.as_f64()?;
    let mut candidates = Vec::new();
    for value in data.values() {
        collect(value, method, 0, &mut candidates);
    }
    let expected = *candidates.first()?;
    if candidates.iter().any(|value| (value - stated).abs() <= TOLERANCE) {
        return None;
    }
    let rounded = (expected * 10_000.0).round() / 10_000.0;
    Some(json!({
        "code": Code::W3001.as_str(),
        "message": format!("meta.confidence is {stated}, but the {method} of the items is {rounded}"),
        "expected": rounded,
        "actual": stated,
    }))
}

fn collect(value: &Value, method: &str, depth: usize, candidates: &mut Vec<f64>) {
    if depth > limits::AGGREGATION_DEPTH_MAX {
        return;
    }
    match value {
        Value::Object(map) => {
            for value in map.values() {
                collect(value, method, depth + 1, candidates);
            }
        }
        Value::Array(items) => {
            candidates.extend(combine(items, method));
            for item in items {
                collect(item, method, depth + 1, candidates);
            }
        }
        _ => {}
    }
}

/// The aggregate of a list in which every item has a confidence.
fn combine(items: &[Value], method: &str) -> Option<f64> {
    let confidences: Option<Vec<f64>> = items
        .iter()
        .map(|item| item.get("confidence").and_then(Value::as_f64))
        .collect();
    let confidences = confidences.filter(|list| !list.is_empty())?;
    match method {
        "min" => confidences.into_iter().min_by(f64::total_cmp),
        "mean" => Some(mean(confidences.iter().map(|confidence| (*confidence, 1.0)))),
        // Weights that are not in the data (areas, for example) cannot be recomputed.
        "weighted_mean" => {
            let weight = |item: &Value| item.get("weight").or_else(|| item.get("importance"))?.as_f64();
            let weights: Option<Vec<f64>> = items.iter().map(weight).collect();
            let weights = weights.filter(|list| list.iter().sum::<f64>() > 0.0)?;
            Some(mean(confidences.into_iter().zip(weights)))
        }
        _ => None,
    }
}

fn mean(weighted: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (sum, weights) = weighted.fold((0.0, 0.0), |(sum, weights), (value, weight)| {
        (sum + value * weight, weights + weight)
    });
    sum / weights
}

//! The rules of an expectation: `_validate` with thresholds and words, `_contains` with values at paths.
//! Rules are parsed once; a rule that was parsed is compared without further errors.

use serde_json::Value;

use super::Mismatch;
use super::expectation::ExpectationProblem;
use super::path::ValuePath;
use super::subset::same;
use crate::document::join;

/// A rule of `_validate`.
#[derive(Debug)]
pub(super) enum ExpectationRule {
    Required(Vec<ValuePath>),
    ConfidenceMin(Value),
    ConfidenceMax(Value),
    RationaleMinLength(u64),
    Contains(WordPlaces),
    NotContains(WordPlaces),
}

/// Words, and where they are searched.
#[derive(Debug)]
pub(super) enum WordPlaces {
    /// In all strings of the data.
    Anywhere(Vec<String>),
    /// Per path in the strings at that path.
    AtPaths(Vec<(ValuePath, Vec<String>)>),
}

/// `{required: [...], confidence_min: 0.8, contains: "word"}`
pub(super) fn rules(source: Option<&Value>, problems: &mut Vec<ExpectationProblem>) -> Vec<ExpectationRule> {
    let map = match source {
        None => return Vec::new(),
        Some(Value::Object(map)) => map,
        Some(_) => {
            let message = "`_validate` must map rules to their values";
            problems.push(ExpectationProblem::new("/_validate", message));
            return Vec::new();
        }
    };
    let mut parsed = Vec::new();
    for (name, value) in map {
        match rule(name, value) {
            Ok(rule) => parsed.push(rule),
            Err(problem) => problems.push(ExpectationProblem::new(
                join("/_validate", name),
                format!("`_validate.{name}` {problem}"),
            )),
        }
    }
    parsed
}

fn rule(name: &str, value: &Value) -> Result<ExpectationRule, String> {
    match name {
        "required" => {
            let paths = texts(value).ok_or("must be a field or a list of fields")?;
            let paths = paths.iter().map(|path| ValuePath::parse(path));
            Ok(ExpectationRule::Required(
                paths
                    .collect::<Result<_, _>>()
                    .map_err(|problem: String| with_verb(&problem))?,
            ))
        }
        "confidence_min" => Ok(ExpectationRule::ConfidenceMin(confidence(value)?)),
        "confidence_max" => Ok(ExpectationRule::ConfidenceMax(confidence(value)?)),
        "rationale_min_length" => {
            let length = value.as_u64().ok_or("must be an integer")?;
            Ok(ExpectationRule::RationaleMinLength(length))
        }
        "contains" => Ok(ExpectationRule::Contains(word_places(value)?)),
        "not_contains" => Ok(ExpectationRule::NotContains(word_places(value)?)),
        _ => Err(String::from("is not a known rule")),
    }
}

fn with_verb(problem: &str) -> String {
    format!("has an {problem}")
}

fn confidence(value: &Value) -> Result<Value, String> {
    let valid = value.as_f64().is_some_and(|number| (0.0..=1.0).contains(&number));
    match valid {
        true => Ok(value.clone()),
        false => Err(String::from("must be a number from 0 to 1")),
    }
}

/// A string, or a list of strings.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(items) => items.iter().map(|item| item.as_str().map(String::from)).collect(),
        _ => None,
    }
}

fn word_places(value: &Value) -> Result<WordPlaces, String> {
    let wrong = "must be a string or a list of strings, or map paths to them";
    let Value::Object(paths) = value else {
        return Ok(WordPlaces::Anywhere(texts(value).ok_or(wrong)?));
    };
    let mut places = Vec::with_capacity(paths.len());
    for (path, words) in paths {
        let path = ValuePath::parse(path).map_err(|problem| with_verb(&problem))?;
        places.push((path, texts(words).ok_or(wrong)?));
    }
    Ok(WordPlaces::AtPaths(places))
}

/// `{"issues[*].type": ["security"]}`
pub(super) fn contained(
    source: Option<&Value>,
    problems: &mut Vec<ExpectationProblem>,
) -> Vec<(ValuePath, Vec<Value>)> {
    let map = match source {
        None => return Vec::new(),
        Some(Value::Object(map)) => map,
        Some(_) => {
            let message = "`_contains` must map paths to values";
            problems.push(ExpectationProblem::new("/_contains", message));
            return Vec::new();
        }
    };
    let mut parsed = Vec::new();
    for (path, wanted) in map {
        let values = match wanted {
            Value::Array(values) => values.clone(),
            value => vec![value.clone()],
        };
        match ValuePath::parse(path) {
            Ok(path) => parsed.push((path, values)),
            Err(problem) => problems.push(ExpectationProblem::new(join("/_contains", path), problem)),
        }
    }
    parsed
}

pub(super) fn check_rule(rule: &ExpectationRule, envelope: &Value, found: &mut Vec<Mismatch>) {
    match rule {
        ExpectationRule::Required(paths) => {
            let missing = paths.iter().filter(|path| path.values(envelope).is_empty());
            let missing = missing.map(|path| format!("`{}` is required but missing", path.text));
            found.extend(missing.map(|message| Mismatch::new("", message)));
        }
        ExpectationRule::ConfidenceMin(limit) => {
            threshold(limit, envelope, "at least", |have, limit| have >= limit, found);
        }
        ExpectationRule::ConfidenceMax(limit) => {
            threshold(limit, envelope, "at most", |have, limit| have <= limit, found);
        }
        ExpectationRule::RationaleMinLength(least) => rationale(*least, envelope, found),
        ExpectationRule::Contains(places) => words(places, envelope, true, found),
        ExpectationRule::NotContains(places) => words(places, envelope, false, found),
    }
}

fn threshold(
    wanted: &Value,
    envelope: &Value,
    word: &str,
    holds: fn(f64, f64) -> bool,
    found: &mut Vec<Mismatch>,
) {
    let (pointer, have) = ("/meta/confidence", envelope.pointer("/meta/confidence"));
    let ok = match (have.and_then(Value::as_f64), wanted.as_f64()) {
        (Some(have), Some(limit)) => holds(have, limit),
        _ => false,
    };
    if !ok {
        let message = format!("the confidence must be {word} {wanted}");
        found.push(Mismatch::new(pointer, message).values(Some(wanted), have));
    }
}

fn rationale(least: u64, envelope: &Value, found: &mut Vec<Mismatch>) {
    let pointer = "/data/rationale";
    let have = envelope.pointer(pointer).and_then(Value::as_str);
    let length = have.map_or(0, |text| text.chars().count()) as u64;
    if length < least {
        let message = format!("the rationale has {length} characters, fewer than {least}");
        found.push(Mismatch::new(pointer, message));
    }
}

fn words(places: &WordPlaces, envelope: &Value, should: bool, found: &mut Vec<Mismatch>) {
    let look = |word: &str, place: &str, text: &str, pointer: &str| {
        let verb = if should { "does not contain" } else { "contains" };
        let wrong = text.contains(word) != should;
        wrong.then(|| Mismatch::new(pointer, format!("{place} {verb} `{word}`")))
    };
    match places {
        WordPlaces::AtPaths(paths) => {
            for (path, words) in paths {
                let values = path.values(envelope);
                let text: Vec<String> = values.iter().map(|(_, value)| gathered(value)).collect();
                let (text, place) = (text.join("\n"), format!("`{}`", path.text));
                let pointer = values.first().map_or("", |(pointer, _)| pointer);
                found.extend(words.iter().filter_map(|word| look(word, &place, &text, pointer)));
            }
        }
        WordPlaces::Anywhere(words) => {
            let data = envelope.get("data").or_else(|| envelope.get("partial_data"));
            let text = data.map(gathered).unwrap_or_default();
            let mismatches = words
                .iter()
                .filter_map(|word| look(word, "the answer", &text, "/data"));
            found.extend(mismatches);
        }
    }
}

/// All strings in a value, one per line; numbers are included as text.
fn gathered(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(gathered).collect::<Vec<_>>().join("\n"),
        Value::Object(map) => map.values().map(gathered).collect::<Vec<_>>().join("\n"),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Checks that each wanted value is among the values at the path.
pub(super) fn check_contained(
    path: &ValuePath,
    wanted: &[Value],
    envelope: &Value,
    found: &mut Vec<Mismatch>,
) {
    let there = path.values(envelope);
    // If the path leads to a list, its items are compared.
    let items: Vec<&Value> = there
        .into_iter()
        .flat_map(|(_, value)| match value {
            Value::Array(items) => items.iter().collect(),
            other => vec![other],
        })
        .collect();
    for value in wanted {
        if !items.iter().any(|item| same(value, item)) {
            let message = format!("`{}` does not contain {value}", path.text);
            let actual = Value::Array(items.iter().map(|item| (*item).clone()).collect());
            found.push(Mismatch::new("/data", message).values(Some(value), Some(&actual)));
        }
    }
}

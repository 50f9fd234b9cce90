//! Validates the manifest against its schema (the file that editors use for completion), and checks the few
//! rules that a schema cannot state.

use std::sync::OnceLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

use super::violation::{Violation, quoted};
use crate::diagnostic::{Diagnostic, Location, Rule, nearest};
use crate::document::{EntryPart, dotted, join};
use crate::format::Format;
use crate::load::LoadContext;

const SCHEMA: &str = include_str!("../../../../docs/reference/module.schema.json");

/// The schema of manifests, parsed and compiled once per process.
struct ManifestSchema {
    document: Value,
    validator: Option<Validator>,
}

fn schema() -> &'static ManifestSchema {
    static COMPILED: OnceLock<ManifestSchema> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let document: Value = serde_json::from_str(SCHEMA).unwrap_or_default();
        let validator = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft7)
            .build(&document)
            .ok();
        ManifestSchema { document, validator }
    })
}

pub(super) fn check(reading: &mut LoadContext<'_>) {
    let Some(module) = &reading.module else { return };
    let source = Value::Object(module.source.clone());
    let format = module.format;
    let schema = schema();
    let mut found = Vec::new();
    if let Some(validator) = &schema.validator
        && !validator.is_valid(&source)
    {
        let mut wrong_types: Vec<String> = Vec::new();
        for error in validator.iter_errors(&source) {
            let pointer = error.instance_path().to_string();
            match error.kind() {
                ValidationErrorKind::Type { .. } => wrong_types.push(pointer),
                // For a value that is not a string, the list of allowed strings is not helpful.
                ValidationErrorKind::Enum { .. } if wrong_types.contains(&pointer) => continue,
                _ => {}
            }
            found.extend(violations(reading, &error));
        }
    }
    let Value::Object(map) = &source else { return };
    unknown_keys(
        reading,
        &schema.document,
        &schema.document,
        &source,
        "",
        &mut found,
    );
    policies(reading, map, &mut found);
    found.extend(ambiguous(reading, format));
    found.extend(deprecated(format));
    reading.report.extend(found);
}

/// Converts one validator error to diagnostics with the matching rule.
fn violations(reading: &LoadContext<'_>, error: &ValidationError<'_>) -> Vec<Diagnostic> {
    let pointer = error.instance_path().to_string();
    if let ValidationErrorKind::AnyOf { context } = error.kind()
        && error.instance().is_object()
        && let Some(errors) = context.last()
    {
        // The mapping is the second of the two forms of such a key.
        return errors
            .iter()
            .flat_map(|error| violations(reading, error))
            .collect();
    }
    if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
        // Only `error_codes` restricts its keys.
        return unexpected
            .iter()
            .map(|key| bad_error_code(reading, &pointer, key))
            .collect();
    }
    let violation = Violation::of(error);
    let (rule, hint) = rule_for(error, &pointer);
    let part = if violation.at_key {
        EntryPart::Key
    } else {
        EntryPart::Value
    };
    let mut diagnostic =
        Diagnostic::new(rule, violation.message).at(reading.in_manifest(&violation.pointer, part));
    if rule == Rule::UNSUPPORTED_FEATURE {
        diagnostic.message = format!(
            "`{}: {}` is not defined by any version of the format",
            dotted(&pointer),
            error.instance().as_str().unwrap_or_default()
        );
    }
    if rule == Rule::BAD_VERSION {
        diagnostic.message = format!("{} is not a semantic version", quoted(error.instance()));
    }
    if rule == Rule::BAD_NAME {
        diagnostic.message = format!("{} is not a module name", quoted(error.instance()));
    }
    if rule == Rule::BAD_TEST_PAIR {
        diagnostic.message = format!("{} is not a test pair", quoted(error.instance()));
    }
    if let Some(hint) = hint.or(violation.hint) {
        diagnostic = diagnostic.hint(hint);
    }
    vec![diagnostic]
}

fn rule_for(error: &ValidationError<'_>, pointer: &str) -> (Rule, Option<String>) {
    let text = error.instance().as_str();
    match error.kind() {
        ValidationErrorKind::Required { .. } => (Rule::MISSING_KEY, None),
        ValidationErrorKind::Type { .. } if pointer == "/version" => (
            Rule::WRONG_TYPE,
            Some(String::from("write three numbers: `version: 1.0.0`")),
        ),
        ValidationErrorKind::Type { .. } if pointer.starts_with("/policies/") => {
            (Rule::WRONG_TYPE, Some(String::from("write `allow` or `deny`")))
        }
        ValidationErrorKind::Type { .. } => (Rule::WRONG_TYPE, None),
        ValidationErrorKind::Enum { .. } => match unsupported(pointer, text) {
            Some(hint) => (Rule::UNSUPPORTED_FEATURE, Some(String::from(hint))),
            None => (Rule::UNKNOWN_VALUE, None),
        },
        ValidationErrorKind::AnyOf { .. } => any_of(error, pointer),
        ValidationErrorKind::Pattern { .. } if pointer == "/name" => (Rule::BAD_NAME, name_hint(text)),
        ValidationErrorKind::Pattern { .. } if pointer == "/version" => {
            (Rule::BAD_VERSION, Some(version_hint(text.unwrap_or_default())))
        }
        ValidationErrorKind::Pattern { .. } if pointer.starts_with("/tests/") => (
            Rule::BAD_TEST_PAIR,
            Some(String::from(
                "write `tests/case1.input.json -> tests/case1.expected.json`",
            )),
        ),
        ValidationErrorKind::UniqueItems => (Rule::REPEATED_ITEM, None),
        _ => (Rule::OUT_OF_RANGE, None),
    }
}

/// Features that documents mention but no version defines.
fn unsupported(pointer: &str, text: Option<&str>) -> Option<&'static str> {
    match (pointer, text?) {
        ("/composition/pattern", "iterative" | "iteration") => {
            Some("use `sequential`, `parallel` or `conditional`, and loop in the caller")
        }
        ("/meta/risk_rule", "custom_function") => {
            Some("use `explicit` and have the module state the risk, or use one of the max rules")
        }
        (pointer, "custom") if pointer.ends_with("/aggregate") => {
            Some("use `merge`, `array` or `first`, or write a module that joins the results")
        }
        _ => None,
    }
}

/// Keys with several forms: a scalar or a mapping, a word or a flag.
fn any_of(error: &ValidationError<'_>, pointer: &str) -> (Rule, Option<String>) {
    let text = error.instance().as_str();
    if pointer == "/context" && text.is_some() {
        let hint = nearest(text.unwrap_or_default(), ["fork", "main"]);
        let hint = hint.map_or_else(
            || String::from("use `fork` or `main`"),
            |near| format!("did you mean `{near}`?"),
        );
        return (Rule::UNKNOWN_VALUE, Some(hint));
    }
    if pointer.starts_with("/policies/") {
        let rule = if text.is_some() {
            Rule::UNKNOWN_VALUE
        } else {
            Rule::WRONG_TYPE
        };
        return (rule, Some(String::from("use `allow` or `deny`")));
    }
    (Rule::WRONG_TYPE, None)
}

fn name_hint(text: Option<&str>) -> Option<String> {
    let suggestion: String = text?
        .trim()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect();
    let suggestion = suggestion.trim_matches(|c: char| c == '-' || c.is_ascii_digit());
    let rule = "lower case letters, digits and hyphens, beginning with a letter";
    Some(if suggestion.is_empty() {
        String::from(rule)
    } else {
        format!("{rule}: `{suggestion}`")
    })
}

fn version_hint(text: &str) -> String {
    let plain = text.trim_start_matches(['v', 'V', '=']).trim();
    let parts: Vec<&str> = plain.split('.').collect();
    let numeric = parts
        .iter()
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    match (numeric, parts.as_slice()) {
        (true, [major]) => format!("write `{major}.0.0`"),
        (true, [major, minor]) => format!("write `{major}.{minor}.0`"),
        (true, [major, minor, patch, ..]) => {
            let clean = |part: &str| {
                String::from(part.trim_start_matches('0'))
                    .parse::<u64>()
                    .unwrap_or(0)
            };
            format!("write `{}.{}.{}`", clean(major), clean(minor), clean(patch))
        }
        _ => String::from("write three numbers, for example `1.0.0` or `1.0.0-beta.1`"),
    }
}

fn bad_error_code(reading: &LoadContext<'_>, pointer: &str, key: &str) -> Diagnostic {
    let message = format!("`{key}` cannot be a module's own error code");
    Diagnostic::new(Rule::BAD_ERROR_CODE, message)
        .at(reading.in_manifest(&join(pointer, key), EntryPart::Key))
        .hint("a module's own codes are E5000 to E9999; lower codes are reserved for the runtime")
}

/// Unknown keys that resemble a known one. Other custom keys are allowed.
fn unknown_keys(
    reading: &LoadContext<'_>,
    root: &Value,
    schema: &Value,
    value: &Value,
    pointer: &str,
    found: &mut Vec<Diagnostic>,
) {
    let schema = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| root.pointer(reference.trim_start_matches('#')))
        .unwrap_or(schema);
    match value {
        Value::Object(map) => {
            let schema = schema
                .get("anyOf")
                .and_then(|forms| forms.get(1))
                .and_then(|form| form.get("$ref"))
                .and_then(Value::as_str)
                .and_then(|reference| root.pointer(reference.trim_start_matches('#')))
                .unwrap_or(schema);
            let Some(known) = schema.get("properties").and_then(Value::as_object) else {
                return;
            };
            for (key, value) in map {
                let child = join(pointer, key);
                if let Some(schema) = known.get(key) {
                    unknown_keys(reading, root, schema, value, &child, found);
                } else if let Some(near) = misspelt(key, known, map) {
                    let message = format!("the key `{}` is unknown", dotted(&child));
                    let diagnostic = Diagnostic::new(Rule::UNKNOWN_KEY, message);
                    found.push(
                        diagnostic
                            .at(reading.in_manifest(&child, EntryPart::Key))
                            .hint(format!(
                                "did you mean `{near}`? custom keys should begin with `x-`"
                            )),
                    );
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    unknown_keys(
                        reading,
                        root,
                        schema,
                        item,
                        &join(pointer, &index.to_string()),
                        found,
                    );
                }
            }
        }
        _ => {}
    }
}

/// The known key that `key` is a misspelling of. A key that is already present is excluded.
fn misspelt<'a>(key: &str, known: &'a Map<String, Value>, present: &Map<String, Value>) -> Option<&'a str> {
    if key.starts_with("x-") || key.ends_with("_allowed") {
        return None;
    }
    let free = known
        .keys()
        .map(String::as_str)
        .filter(|name| !present.contains_key(*name));
    nearest(key, free)
}

/// `network: deny` together with `network_allowed: true`, and the older spelling.
fn policies(reading: &LoadContext<'_>, source: &Map<String, Value>, found: &mut Vec<Diagnostic>) {
    let Some(policies) = source.get("policies").and_then(Value::as_object) else {
        return;
    };
    for (key, value) in policies {
        let Some(name) = key.strip_suffix("_allowed") else {
            continue;
        };
        let place = || reading.in_manifest(&join("/policies", key), EntryPart::Key);
        let Some(flag) = value.as_bool() else { continue };
        let word = if flag { "allow" } else { "deny" };
        if let Some(other) = policies.get(name).and_then(Value::as_str)
            && other != word
        {
            let message = format!("`{name}: {other}` and `{key}: {flag}` contradict each other");
            let diagnostic = Diagnostic::new(Rule::POLICY_CONFLICT, message).at(place());
            found.push(diagnostic.hint("keep one of the two; until then the policy is deny"));
        } else {
            let message = format!("`{key}: {flag}` is the older spelling of a policy");
            let hint = if name == "tools" {
                String::from("write `tools: {policy: deny_by_default}` beside `policies`")
            } else {
                format!("write `{name}: {word}`")
            };
            found.push(
                Diagnostic::new(Rule::POLICY_SPELLING, message)
                    .at(place())
                    .hint(hint),
            );
        }
    }
}

fn ambiguous(reading: &LoadContext<'_>, format: Format) -> Option<Diagnostic> {
    let names = ["module.yaml", "module.yml", "MODULE.md", "module.md"];
    let present: Vec<&str> = names
        .into_iter()
        .filter(|name| reading.files.contains(name))
        .collect();
    let (taken, rest) = present.split_first()?;
    let ignored = rest.first()?;
    let message = format!("`{taken}` and `{ignored}` both exist; the module is read as {format}");
    let diagnostic = Diagnostic::new(Rule::AMBIGUOUS_FORMAT, message).at(Location::file(*ignored));
    Some(diagnostic.hint(format!("remove `{ignored}` if it is no longer needed")))
}

fn deprecated(format: Format) -> Option<Diagnostic> {
    use crate::diagnostic::Severity;
    let severity = match format {
        Format::V0 | Format::V1 => Severity::Warning,
        Format::V2_0 | Format::V2_1 => Severity::Note,
        Format::V2_2 | Format::V2_5 => return None,
    };
    let message = format!("the module is written in {format}, which is deprecated");
    let diagnostic = Diagnostic::new(Rule::DEPRECATED_FORMAT, message).severity(severity);
    Some(diagnostic.hint("`cogn migrate` converts it to v2.2"))
}

//! Contract rules: sections are present, schemas are valid, references resolve.

use jsonschema::Draft;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::Strict;
use super::violation::Violation;
use crate::diagnostic::{Diagnostic, Location, Rule, Severity};
use crate::document::{EntryPart, join};
use crate::format::Format;
use crate::load::LoadContext;
use crate::schema::{Contract, ReferenceProblem, ReferenceProblemKind, Section, Visit, admission, walk};

/// Maximum number of diagnostics for one section; the first few show the cause.
const PER_SECTION_MAX: usize = 10;

/// Keywords that constrain a value.
const RULES: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "dependencies",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "uniqueItems",
];

pub(super) fn check(reading: &mut LoadContext<'_>, strict: Strict) {
    let mut found = Vec::new();
    if let Some(module) = &reading.module {
        let contract = &module.contract;
        sections(reading, module.format, strict, contract, &mut found);
        let problems = contract.reference_problems();
        found.extend(problems.iter().map(|problem| reference(reading, problem)));
        beside_references(reading, contract, &mut found);
        let before = found.len();
        meta(reading, contract, &mut found);
        if problems.is_empty() && before == found.len() {
            compile(reading, contract, &mut found);
        }
    }
    reading.report.extend(found);
}

/// Sections that the format requires. Without a readable schema there is nothing to add.
fn sections(
    reading: &LoadContext<'_>,
    format: Format,
    strict: Strict,
    contract: &Contract,
    found: &mut Vec<Diagnostic>,
) {
    let Some(document) = contract.document().as_object().filter(|map| !map.is_empty()) else {
        return;
    };
    if format == Format::V0 {
        return;
    }
    let mut wanted = vec![
        (Section::Input, Severity::Error),
        (Section::Data, Severity::Error),
    ];
    // The strict lists have separate rules for these two.
    if format >= Format::V2_2 && strict == Strict::Standard {
        wanted.extend([
            (Section::Meta, Severity::Warning),
            (Section::Error, Severity::Warning),
        ]);
    }
    for (section, severity) in wanted {
        if contract.pointer(section).is_none() {
            let message = format!("schema.json has no `{}` section", section.as_str());
            let mut diagnostic = Diagnostic::new(Rule::MISSING_SECTION, message).severity(severity);
            let is_section = |name: &str| Section::ALL.iter().any(|known| known.as_str() == name);
            let keys = document
                .keys()
                .map(String::as_str)
                .filter(|name| !is_section(name));
            if let Some(near) = crate::diagnostic::nearest(section.as_str(), keys) {
                diagnostic = diagnostic
                    .at(reading.in_json("schema.json", &join("", near), EntryPart::Key))
                    .hint(format!("is `{near}` meant to be `{}`?", section.as_str()));
            } else {
                diagnostic = diagnostic.at(Location::file("schema.json"));
            }
            found.push(diagnostic);
        }
    }
    if contract.pointer(Section::Data) == Some("/output") && format >= Format::V2_2 {
        let diagnostic = Diagnostic::new(Rule::OUTPUT_ALIAS, "`output` is read as `data`");
        found.push(
            diagnostic
                .at(reading.in_json("schema.json", "/output", EntryPart::Key))
                .hint("since v2.2 the section is named `data`"),
        );
    }
}

fn reference(reading: &LoadContext<'_>, problem: &ReferenceProblem) -> Diagnostic {
    // A schema from a separate file has been moved; its author wrote the shorter reference.
    let written = match problem.reference.strip_prefix('#') {
        Some(target) => format!("#{}", reading.origin_of(target).1),
        None => problem.reference.clone(),
    };
    let (rule, message, hint) = match problem.kind {
        ReferenceProblemKind::Remote => (
            Rule::REMOTE_REFERENCE,
            format!("`$ref: {written}` points outside the document"),
            "remote schemas are not fetched: copy the schema into `$defs` and write `#/$defs/NAME`",
        ),
        ReferenceProblemKind::Broken => (
            Rule::BROKEN_REFERENCE,
            format!("`$ref: {written}` does not resolve"),
            "references are relative to the root of the file: `#/$defs/NAME`",
        ),
        ReferenceProblemKind::Loop => (
            Rule::REFERENCE_LOOP,
            format!("`$ref: {written}` resolves to itself"),
            "a schema may contain itself only inside a property or an item",
        ),
    };
    let place = reading.in_contract(&problem.pointer, EntryPart::Value);
    Diagnostic::new(rule, message).at(place).hint(hint)
}

/// Keywords without effect: up to draft-07 a `$ref` disables all keywords beside it.
fn beside_references(reading: &LoadContext<'_>, contract: &Contract, found: &mut Vec<Diagnostic>) {
    if matches!(contract.draft(), Draft::Draft201909 | Draft::Draft202012) {
        return;
    }
    let mut places = Vec::new();
    for root in roots(contract) {
        let Some(schema) = contract.document().pointer(&root) else {
            continue;
        };
        walk(schema, &root, &mut |here, schema| {
            if schema.get("$ref").is_some_and(Value::is_string)
                && let Some(silent) = schema.keys().find(|key| RULES.contains(&key.as_str()))
            {
                places.push((String::from(here), silent.clone()));
            }
            Visit::Descend
        });
    }
    for (here, keyword) in places.into_iter().take(PER_SECTION_MAX) {
        let message = format!("`{keyword}` has no effect beside `$ref`");
        found.push(
            Diagnostic::new(Rule::SILENT_KEYWORD, message)
                .at(reading.in_contract(&join(&here, &keyword), EntryPart::Key))
                .hint("write `allOf: [{$ref: ...}, {...}]` to apply both"),
        );
    }
}

/// The roots of all schemas: the sections and the definitions.
fn roots(contract: &Contract) -> Vec<String> {
    let mut roots: Vec<String> = Section::ALL
        .into_iter()
        .filter_map(|section| contract.pointer(section).map(String::from))
        .collect();
    for group in ["$defs", "definitions"] {
        if let Some(definitions) = contract.document().get(group).and_then(Value::as_object) {
            let below = join("", group);
            roots.extend(definitions.keys().map(|name| join(&below, name)));
        }
    }
    roots
}

/// Validates each section and each definition against the meta-schema of its draft. The document as a whole
/// is not a schema, so the meta-schema is applied to each root.
fn meta(reading: &LoadContext<'_>, contract: &Contract, found: &mut Vec<Diagnostic>) {
    let document = contract.document();
    for root in roots(contract) {
        let Some(schema) = document.pointer(&root) else {
            continue;
        };
        if is_meta_valid(contract.draft(), schema) {
            continue;
        }
        let complaints = meta_violations(contract.draft(), schema);
        for violation in complaints.into_iter().take(PER_SECTION_MAX) {
            let pointer = format!("{root}{}", violation.pointer);
            let part = if violation.at_key {
                EntryPart::Key
            } else {
                EntryPart::Value
            };
            let mut diagnostic = Diagnostic::new(Rule::INVALID_SCHEMA, violation.message);
            diagnostic = diagnostic.at(reading.in_contract(&pointer, part));
            if let Some(hint) = violation.hint {
                diagnostic = diagnostic.hint(hint);
            }
            found.push(diagnostic);
        }
    }
}

fn is_meta_valid(draft: Draft, schema: &Value) -> bool {
    match draft {
        Draft::Draft4 => jsonschema::draft4::meta::is_valid(schema),
        Draft::Draft6 => jsonschema::draft6::meta::is_valid(schema),
        Draft::Draft201909 => jsonschema::draft201909::meta::is_valid(schema),
        Draft::Draft202012 => jsonschema::draft202012::meta::is_valid(schema),
        _ => jsonschema::draft7::meta::is_valid(schema),
    }
}

fn meta_violations(draft: Draft, schema: &Value) -> Vec<Violation> {
    let validator = match draft {
        Draft::Draft4 => jsonschema::draft4::meta::validator(),
        Draft::Draft6 => jsonschema::draft6::meta::validator(),
        Draft::Draft201909 => jsonschema::draft201909::meta::validator(),
        Draft::Draft202012 => jsonschema::draft202012::meta::validator(),
        _ => jsonschema::draft7::meta::validator(),
    };
    validator
        .iter_errors(schema)
        .map(|error| {
            let mut violation = Violation::of(&error);
            if violation.pointer.is_empty() {
                violation.message = String::from("a schema must be a mapping, or true or false");
            }
            if matches!(error.kind(), ValidationErrorKind::Format { .. }) {
                violation.hint = Some(String::from("the pattern is not a valid regular expression"));
            }
            if matches!(error.kind(), ValidationErrorKind::AnyOf { .. })
                && violation.pointer.ends_with("/type")
            {
                let types = [
                    "array", "boolean", "integer", "null", "number", "object", "string",
                ];
                let near = error
                    .instance()
                    .as_str()
                    .and_then(|word| crate::diagnostic::nearest(word, types));
                violation.message = format!(
                    "{} is not a JSON type",
                    super::violation::quoted(error.instance())
                );
                violation.hint = Some(match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("use one of {}", types.join(", ")),
                });
            }
            violation
        })
        .collect()
}

/// Compiles every schema that a run of the module applies, and admits the one that back-ends receive.
pub(super) fn check_usable(reading: &mut LoadContext<'_>) {
    let mut found = Vec::new();
    if let Some(module) = &reading.module {
        compile(reading, &module.contract, &mut found);
        // The same sections, rewritten for the strictness of the module.
        compile(reading, module.answer_contract(), &mut found);
        for (reference, contract) in &module.context_schemas {
            if let Err(error) = contract.validator(Section::Input) {
                let message = format!(
                    "the context schema `{reference}` cannot be used: {}",
                    error.message
                );
                found.push(Diagnostic::new(Rule::INVALID_SCHEMA, message));
            }
        }
        if found.is_empty()
            && let Err(refusal) = admission::admit(&module.output_schema())
        {
            let message = format!("the schema of a complete answer is not admitted: {refusal}");
            found.push(Diagnostic::new(Rule::INVALID_SCHEMA, message));
        }
    }
    reading.report.extend(found);
}

/// Problems that only compilation detects.
fn compile(reading: &LoadContext<'_>, contract: &Contract, found: &mut Vec<Diagnostic>) {
    for section in Section::ALL {
        if let Err(error) = contract.validator(section) {
            let message = format!("`{}` cannot be used: {}", section.as_str(), error.message);
            let place = reading.in_contract(&error.pointer, EntryPart::Value);
            let diagnostic = Diagnostic::new(Rule::INVALID_SCHEMA, message).at(place);
            if !found.iter().any(|other| other.location == diagnostic.location) {
                found.push(diagnostic);
            }
        }
    }
}

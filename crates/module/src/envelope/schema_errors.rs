//! Converts schema errors to violations, and a list of violations to the one error of an envelope: its code,
//! a message with the first field, a suggestion with the required change, and the complete list.

use std::borrow::Cow;

use jsonschema::{ValidationError, error::ValidationErrorKind};
use serde_json::{Value, json};

use super::error::ErrorBody;
use super::structure::ShapeViolation;
use crate::code::Code;
use crate::limits;
use crate::schema::{CompiledSchema, Contract, SchemaError, Section};

/// Adds all violations of a section of the contract. Valid values cost one pass.
pub(super) fn check_section(
    contract: &Contract,
    section: Section,
    value: &Value,
    found: &mut Vec<ShapeViolation>,
) -> Result<(), Box<ErrorBody>> {
    let validator = contract
        .validator(section)
        .map_err(|error| Box::new(broken_contract(section, error)))?;
    let Some(validator) = validator else { return Ok(()) };
    if !validator.is_valid(value) {
        let root = match section {
            Section::Input | Section::Envelope => String::new(),
            Section::Data | Section::Meta | Section::Error => format!("/{}", section.as_str()),
        };
        let before = found.len();
        collect(validator, value, &root, found);
        if found.len() == before {
            // The validator rejected the value without listing an error; the value must not pass.
            found.push(ShapeViolation::new(root, "schema", "does not match the schema"));
        }
    }
    Ok(())
}

/// Checks a value that is not a section of the module's contract but has its own contract.
pub(crate) fn check_part(
    contract: &Contract,
    value: &Value,
    found: &mut Vec<ShapeViolation>,
) -> Result<(), Box<ErrorBody>> {
    check_section(contract, Section::Input, value, found)
}

fn collect(validator: &CompiledSchema, value: &Value, root: &str, found: &mut Vec<ShapeViolation>) {
    // One more than is listed, to detect an incomplete list.
    for error in validator.errors(value).take(limits::ERRORS_LISTED_MAX + 1) {
        let pointer = format!("{root}{}", error.instance_path());
        let keyword = String::from(error.kind().keyword());
        let is_enum = breaks_enum(&error);
        found.push(ShapeViolation {
            message: describe(&error, is_enum),
            pointer,
            keyword: Cow::Owned(keyword),
            code: if is_enum { Code::E3005 } else { Code::E3001 },
        });
    }
}

/// Whether a value fails at an enum, plain or extensible.
fn breaks_enum(error: &ValidationError<'_>) -> bool {
    match error.kind() {
        ValidationErrorKind::Enum { .. } => true,
        ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } => {
            let offers_enum = context
                .iter()
                .flatten()
                .any(|inner| matches!(inner.kind(), ValidationErrorKind::Enum { .. }));
            let is_custom = error.instance().get("custom").is_some();
            (offers_enum && !error.instance().is_object()) || is_custom
        }
        _ => false,
    }
}

/// The validator's message without the value, which may be long or private.
fn describe(error: &ValidationError<'_>, is_enum: bool) -> String {
    match error.kind() {
        ValidationErrorKind::OneOfNotValid { .. } | ValidationErrorKind::AnyOf { .. } if is_enum => {
            if error.instance().is_object() {
                let max = limits::CUSTOM_CHARS_MAX;
                format!(
                    "a custom value is not allowed here, or is not {{custom, reason}} with at most {max} characters"
                )
            } else {
                String::from("is not one of the values listed in the schema")
            }
        }
        ValidationErrorKind::Enum { options } => describe_enum(options),
        ValidationErrorKind::Required { property } => {
            format!("`{}` is missing", property.as_str().unwrap_or_default())
        }
        _ => error.masked().to_string(),
    }
}

/// Lists all allowed values up to the limit.
fn describe_enum(options: &Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let listed: Vec<String> = options
        .iter()
        .take(limits::ENUM_VALUES_LISTED_MAX)
        .map(Value::to_string)
        .collect();
    let rest = match options.len() - listed.len() {
        0 => String::new(),
        rest => format!(" or {rest} others"),
    };
    format!("must be one of {}{rest}", listed.join(", "))
}

pub(super) fn broken_contract(section: Section, error: &SchemaError) -> ErrorBody {
    let message = format!(
        "the module's {} schema cannot be compiled: {error}",
        section.as_str()
    );
    ErrorBody::new(Code::E4000, message)
        .suggest(format!(
            "correct the schema at `#{}`; `cogn validate` shows the position",
            error.pointer
        ))
        .detail("reason", "broken_schema")
        .detail("pointer", error.pointer.as_str())
}

/// One error for a list of violations of an answer; the list is not empty. A missing rationale and too many
/// insights take precedence because their codes are more specific; the code of an invalid enum value is used
/// only if there is no other violation.
pub(super) fn answer_error(found: &[ShapeViolation]) -> ErrorBody {
    let any = |code: Code| found.iter().find(|violation| violation.code == code);
    let first = any(Code::E3003)
        .or_else(|| any(Code::E3004))
        .or_else(|| any(Code::E3001))
        .or_else(|| found.first());
    let code = first.map_or(Code::E3001, |violation| violation.code);
    error_of(code, first, found, "the answer")
}

/// One error with the given code for a list of violations of `whole`.
pub(super) fn error_of(
    code: Code,
    first: Option<&ShapeViolation>,
    found: &[ShapeViolation],
    whole: &str,
) -> ErrorBody {
    let (place, what) = first.map_or_else(
        || (String::from(whole), String::from(code.summary())),
        |first| match first.pointer.as_str() {
            "" => (String::from(whole), first.message.clone()),
            pointer => (format!("`{pointer}`"), first.message.clone()),
        },
    );
    let others = match found.len().saturating_sub(1) {
        0 => String::new(),
        1 => String::from(" (and 1 more problem)"),
        n if n >= limits::ERRORS_LISTED_MAX => String::from(" (and many more problems)"),
        n => format!(" (and {n} more problems)"),
    };
    let errors: Vec<Value> = found
        .iter()
        .take(limits::ERRORS_LISTED_MAX)
        .map(|violation| {
            json!({
                "pointer": violation.pointer,
                "message": violation.message,
                "keyword": violation.keyword,
            })
        })
        .collect();
    let message = match first {
        Some(first) if first.pointer.is_empty() => format!("{what}{others}"),
        _ => format!("{place}: {what}{others}"),
    };
    let error = ErrorBody::new(code, message)
        .suggest(format!("correct {place} ({what}); {}", code.suggestion()))
        .detail("errors", errors);
    if found.len() > limits::ERRORS_LISTED_MAX {
        return error.detail("errors_complete", false);
    }
    error
}

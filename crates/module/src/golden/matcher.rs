//! Compares an answer with a parsed expectation.

use serde_json::Value;

use super::Mismatch;
use super::expectation::{Described, Expectation, ExpectedAnswer};
use super::rules::{check_contained, check_rule};
use super::subset::compare;
use crate::document::join;
use crate::limits;
use crate::module::Module;
use crate::schema::CompiledSchema;

/// All mismatches between `envelope` and `expected`; empty means that the test passes. An expectation of an
/// unknown form never passes.
pub fn compare_answer(module: &Module, expected: &Value, envelope: &Value) -> Vec<Mismatch> {
    let mut found = Vec::new();
    match Expectation::parse(module, expected) {
        Ok(expectation) => {
            for (part, schema) in &expectation.schemas {
                check_schema(part, schema, envelope, &mut found);
            }
            for rule in &expectation.rules {
                check_rule(rule, envelope, &mut found);
            }
            for (path, wanted) in &expectation.contained {
                check_contained(path, wanted, envelope, &mut found);
            }
            if let Some(answer) = &expectation.answer {
                check_answer(answer, envelope, &mut found);
            }
        }
        Err(problems) => found.extend(problems.into_iter().map(|problem| {
            let place = match problem.pointer.as_str() {
                "" => String::new(),
                pointer => format!(" at {pointer}"),
            };
            Mismatch::new(
                "",
                format!("the expectation is invalid{place}: {}", problem.message),
            )
        })),
    }
    found.truncate(limits::MISMATCHES_MAX);
    found
}

/// Every value in the test must be present; fields not in the test are ignored.
fn check_answer(answer: &ExpectedAnswer, envelope: &Value, found: &mut Vec<Mismatch>) {
    let values = Value::Object(answer.values.clone());
    match answer.describes {
        Described::Envelope => compare(&values, Some(envelope), "", found),
        Described::Data => compare(&values, envelope.get("data"), "/data", found),
    }
}

fn check_schema(part: &str, schema: &CompiledSchema, envelope: &Value, found: &mut Vec<Mismatch>) {
    let pointer = join("", part);
    let Some(actual) = envelope.get(part) else {
        let absent = Mismatch::new(&pointer, format!("the answer has no `{part}`"));
        return found.push(absent);
    };
    for error in schema.errors(actual).take(limits::MISMATCHES_MAX) {
        let place = format!("{pointer}{}", error.instance_path());
        let value = envelope.pointer(&place);
        found.push(Mismatch::new(place.clone(), error.to_string()).values(None, value));
    }
}

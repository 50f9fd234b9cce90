//! The expected answer of a golden test, parsed from any of its three notations. This is the only parser:
//! `check::golden` reports its problems and [`compare_answer`](super::compare_answer) compares its result with
//! an answer, so that validation accepts what a test accepts. Must not depend on the load context.

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::path::ValuePath;
use super::rules::{ExpectationRule, contained, rules};
use crate::document::join;
use crate::module::Module;
use crate::schema::CompiledSchema;

/// Top-level keys of an envelope. An expectation with these keys only describes the envelope, any other the
/// data.
const PARTS: &[&str] = &["ok", "meta", "data", "error", "partial_data"];

/// What an answer must fulfil; all of it applies.
#[derive(Debug, Default)]
pub(crate) struct Expectation {
    /// A part of the envelope and its schema.
    pub(super) schemas: Vec<(String, CompiledSchema)>,
    pub(super) rules: Vec<ExpectationRule>,
    /// Paths, and the values that must be among those at the path.
    pub(super) contained: Vec<(ValuePath, Vec<Value>)>,
    pub(crate) answer: Option<ExpectedAnswer>,
    /// The example beside schemas, which is not compared with an answer.
    pub(crate) example: Option<ExpectedAnswer>,
}

/// Values that an answer must contain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExpectedAnswer {
    pub(crate) describes: Described,
    pub(crate) values: Map<String, Value>,
    /// JSON pointer to the values in the file.
    pub(crate) pointer: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Described {
    Envelope,
    Data,
}

/// A part of the file that no answer can fulfil because of its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpectationProblem {
    /// JSON pointer into the file.
    pub(crate) pointer: String,
    pub(crate) message: String,
}

impl ExpectationProblem {
    pub(super) fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
        }
    }
}

impl Expectation {
    /// All problems of the form are returned, not only the first.
    pub(crate) fn parse(module: &Module, expected: &Value) -> Result<Self, Vec<ExpectationProblem>> {
        let Value::Object(map) = expected else {
            let message = "an expected answer must be an object";
            return Err(vec![ExpectationProblem::new("", message)]);
        };
        let mut problems = Vec::new();
        let mut parsed = Self::default();
        if map.contains_key("$validate") || map.contains_key("$example") {
            parsed.parse_schemas(module, map, &mut problems);
        } else {
            parsed.rules = rules(map.get("_validate"), &mut problems);
            parsed.contained = contained(map.get("_contains"), &mut problems);
            parsed.answer = answer(map, "", &mut problems);
        }
        match problems.is_empty() {
            true => Ok(parsed),
            false => Err(problems),
        }
    }

    /// `{$validate: {data: <schema>}, $example: <envelope>}`: only the schemas are compared. An example alone
    /// is the expected answer.
    fn parse_schemas(
        &mut self,
        module: &Module,
        map: &Map<String, Value>,
        problems: &mut Vec<ExpectationProblem>,
    ) {
        let example = match map.get("$example") {
            Some(Value::Object(example)) => answer(example, "/$example", problems),
            Some(_) => {
                problems.push(ExpectationProblem::new(
                    "/$example",
                    "`$example` must be an envelope",
                ));
                None
            }
            None => None,
        };
        let schemas = match map.get("$validate") {
            None => {
                self.answer = example;
                return;
            }
            Some(Value::Object(schemas)) => schemas,
            Some(_) => {
                let message = "`$validate` must map parts of the envelope to schemas";
                return problems.push(ExpectationProblem::new("/$validate", message));
            }
        };
        self.example = example;
        for (part, schema) in schemas {
            let pointer = join("/$validate", part);
            if !PARTS.contains(&part.as_str()) {
                let message = format!("`{part}` is not part of an envelope");
                problems.push(ExpectationProblem::new(pointer, message));
                continue;
            }
            match CompiledSchema::new(with_definitions(module, schema), Draft::Draft7) {
                Ok(schema) => self.schemas.push((part.clone(), schema)),
                Err(error) => {
                    let message = format!("`{part}` is not a valid JSON Schema: {error}");
                    problems.push(ExpectationProblem::new(pointer, message));
                }
            }
        }
    }
}

/// The values without comments and rules, if there are any.
fn answer(
    map: &Map<String, Value>,
    pointer: &str,
    problems: &mut Vec<ExpectationProblem>,
) -> Option<ExpectedAnswer> {
    let values: Map<String, Value> = map
        .iter()
        .filter(|(key, _)| !key.starts_with('_') && !key.starts_with('$'))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if values.is_empty() {
        return None;
    }
    let is_part = |key: &String| PARTS.contains(&key.as_str());
    let describes = match values.get("ok") {
        Some(ok) => {
            if !ok.is_boolean() {
                let message = "`ok` must be true or false";
                problems.push(ExpectationProblem::new(join(pointer, "ok"), message));
            }
            Described::Envelope
        }
        None if values.keys().all(is_part) => Described::Envelope,
        None => Described::Data,
    };
    Some(ExpectedAnswer {
        describes,
        values,
        pointer: String::from(pointer),
    })
}

/// Adds the definitions of the module's schema, which a test may reference.
fn with_definitions(module: &Module, schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let (Value::Object(map), Value::Object(document)) = (&mut schema, module.contract.document()) {
        for key in ["$defs", "definitions"] {
            if let Some(definitions) = document.get(key).filter(|_| !map.contains_key(key)) {
                map.insert(String::from(key), definitions.clone());
            }
        }
    }
    schema
}

//! A schema that was admitted and compiled. It is the only way to apply a schema that this process did not
//! write: a value that would cost too much to validate does not match.

use std::fmt;

use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::SchemaError;
use super::admission::{Cost, admit_as};
use super::contract::requested_draft;
use crate::limits;

pub struct CompiledSchema {
    validator: Validator,
    cost: Cost,
}

impl CompiledSchema {
    /// Compiles `schema` under `draft`. The root's own `$id` and `$schema` are omitted: the first would make
    /// local references appear remote, the second names drafts that do not exist
    /// (`.../cognitive-modules/schema/v2.2.json`).
    pub fn new(mut schema: Value, draft: Draft) -> Result<Self, SchemaError> {
        if let Value::Object(map) = &mut schema {
            map.shift_remove("$id");
        }
        Self::compile(schema, draft, Some(true))
    }

    /// Compiles the schema of a request: 2020-12 unless it names another draft, with `format` as an
    /// assertion where the draft says so.
    pub fn of_request(schema: Value) -> Result<Self, SchemaError> {
        let draft = requested_draft(&schema);
        Self::compile(schema, draft, None)
    }

    fn compile(mut schema: Value, draft: Draft, formats: Option<bool>) -> Result<Self, SchemaError> {
        if let Value::Object(map) = &mut schema {
            map.shift_remove("$schema");
        }
        let fail = |message: String| SchemaError {
            pointer: String::new(),
            message,
        };
        let (schema, admitted) = admit_as(&schema, draft).map_err(|refusal| fail(refusal.to_string()))?;
        if let Some(reference) = admitted.unresolved {
            return Err(fail(format!("`$ref: {reference}` does not resolve")));
        }
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(limits::SCHEMA_BACKTRACKS_MAX)
            .size_limit(limits::SCHEMA_PATTERN_BYTES_MAX);
        let mut options = jsonschema::options()
            .with_draft(draft)
            .with_pattern_options(patterns);
        if let Some(formats) = formats {
            options = options.should_validate_formats(formats);
        }
        let validator = options.build(&schema).map_err(|error| SchemaError {
            pointer: error.instance_path().to_string(),
            message: error.to_string(),
        })?;
        Ok(Self {
            validator,
            cost: admitted.cost,
        })
    }

    pub fn is_valid(&self, value: &Value) -> bool {
        self.cost.allows(value) && self.validator.is_valid(value)
    }

    /// The errors of a value. A value for which listing them would cost too much has one error.
    pub fn errors<'a>(&'a self, value: &'a Value) -> Box<dyn Iterator<Item = ValidationError<'a>> + 'a> {
        if !self.cost.allows(value) {
            let error = ValidationError::custom("validating the value takes too many steps");
            return Box::new(std::iter::once(error));
        }
        if self.validator.is_valid(value) {
            return Box::new(std::iter::empty());
        }
        if !self.cost.allows_listing(value) {
            let error =
                ValidationError::custom("does not match the schema; listing the errors takes too many steps");
            return Box::new(std::iter::once(error));
        }
        Box::new(self.validator.iter_errors(value))
    }
}

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledSchema")
            .field("cost", &self.cost)
            .finish_non_exhaustive()
    }
}

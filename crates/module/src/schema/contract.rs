//! Sections of a schema document as validators, compiled on first use.

use std::fmt;
use std::sync::OnceLock;

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::admission::{self, Refusal};
use super::compiled::CompiledSchema;
use super::reference::{ReferenceProblem, ReferenceProblemKind, reference_problems};
use super::variant::Variants;
use crate::manifest::{EnumStrategy, Strictness};

/// The parts of a contract that values are validated against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Input,
    Data,
    Meta,
    Error,
    /// Optional rules across meta and data.
    Envelope,
}

impl Section {
    pub const ALL: [Self; 5] = [Self::Input, Self::Data, Self::Meta, Self::Error, Self::Envelope];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Data => "data",
            Self::Meta => "meta",
            Self::Error => "error",
            Self::Envelope => "envelope",
        }
    }
}

/// A schema that cannot be compiled, with its pointer in the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// JSON pointer into the schema document.
    pub pointer: String,
    pub message: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schema at `#{}`: {}", self.pointer, self.message)
    }
}

impl std::error::Error for SchemaError {}

/// A schema document and its compiled sections.
#[derive(Debug, Default)]
pub struct Contract {
    document: Value,
    slots: [LazyValidator; 5],
    variants: Variants,
    /// Invalid references of the document: it must not be compiled if there are any.
    references: OnceLock<Vec<ReferenceProblem>>,
}

#[derive(Debug, Default)]
struct LazyValidator {
    pointer: Option<String>,
    compiled: OnceLock<Result<CompiledSchema, SchemaError>>,
}

impl Contract {
    /// A contract over `document`, with the pointer of each section (`/data`). A section without a pointer
    /// accepts everything.
    pub fn new(document: Value, pointers: impl IntoIterator<Item = (Section, String)>) -> Self {
        let mut contract = Self {
            document,
            slots: Default::default(),
            variants: Variants::default(),
            references: OnceLock::new(),
        };
        for (section, pointer) in pointers {
            contract.slots[section as usize].pointer = Some(pointer);
        }
        contract
    }

    /// A copy of the contract without the compiled validators.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        let pointers = Section::ALL.into_iter().filter_map(|section| {
            let pointer = self.pointer(section)?;
            Some((section, String::from(pointer)))
        });
        Self::new(self.document.clone(), pointers)
    }

    /// The contract for answers under a module's strictness and enum strategy.
    pub fn for_answers(&self, strictness: Strictness, strategy: EnumStrategy) -> &Self {
        self.variants.get(self, strictness, strategy)
    }

    /// The number of insights that the data schema allows.
    pub fn insights_max(&self) -> Option<u64> {
        self.variants.insights_max(self)
    }

    pub fn document(&self) -> &Value {
        &self.document
    }

    pub fn pointer(&self, section: Section) -> Option<&str> {
        self.slots[section as usize].pointer.as_deref()
    }

    /// The sub-schema of a section as written.
    pub fn schema(&self, section: Section) -> Option<&Value> {
        self.document.pointer(self.pointer(section)?)
    }

    /// References that point outside the document, do not resolve or form a cycle.
    pub fn reference_problems(&self) -> &[ReferenceProblem] {
        self.references.get_or_init(|| {
            let roots: Vec<&str> = self
                .slots
                .iter()
                .filter_map(|slot| slot.pointer.as_deref())
                .collect();
            reference_problems(&self.document, &roots)
        })
    }

    /// The draft of the document.
    pub fn draft(&self) -> Draft {
        self.document.as_object().map_or(Draft::Draft7, draft)
    }

    /// The validator of a section; `None` if the module has no schema for it.
    pub fn validator(&self, section: Section) -> Result<Option<&CompiledSchema>, &SchemaError> {
        let slot = &self.slots[section as usize];
        let Some(pointer) = slot.pointer.as_deref() else {
            return Ok(None);
        };
        slot.compiled
            .get_or_init(|| {
                admission::admit_as(&self.document, self.draft()).map_err(refuse)?;
                match self.reference_problems().first() {
                    Some(problem) => Err(invalid_reference(problem)),
                    None => compile(&self.document, pointer),
                }
            })
            .as_ref()
            .map(Some)
    }
}

fn refuse(refusal: Refusal) -> SchemaError {
    SchemaError {
        pointer: String::new(),
        message: format!("the schema is not admitted: {refusal}"),
    }
}

fn invalid_reference(problem: &ReferenceProblem) -> SchemaError {
    let reference = &problem.reference;
    let message = match problem.kind {
        ReferenceProblemKind::Remote => format!("`$ref: {reference}` points outside the document"),
        ReferenceProblemKind::Broken => format!("`$ref: {reference}` does not resolve"),
        ReferenceProblemKind::Loop => format!("`$ref: {reference}` resolves to itself"),
    };
    SchemaError {
        pointer: problem.pointer.clone(),
        message,
    }
}

/// Compiles the schema at `pointer` with the whole document as its root.
fn compile(document: &Value, pointer: &str) -> Result<CompiledSchema, SchemaError> {
    let Value::Object(document) = document else {
        return Err(SchemaError {
            pointer: String::new(),
            message: String::from("the schema document is not an object"),
        });
    };
    let mut root = Map::with_capacity(document.len() + 1);
    root.insert(String::from("$ref"), Value::String(format!("#{pointer}")));
    for (key, value) in document {
        if key != "$ref" {
            root.insert(key.clone(), value.clone());
        }
    }
    CompiledSchema::new(Value::Object(root), draft(document))
}

/// The draft of a schema in a request: 2020-12 unless it names another.
pub(super) fn requested_draft(schema: &Value) -> Draft {
    match schema.as_object() {
        Some(map) if map.contains_key("$schema") => draft(map),
        _ => Draft::Draft202012,
    }
}

/// Draft-07 unless the document names another published draft.
pub(super) fn draft(document: &Map<String, Value>) -> Draft {
    match document.get("$schema").and_then(Value::as_str) {
        Some(uri) if uri.contains("2020-12") => Draft::Draft202012,
        Some(uri) if uri.contains("2019-09") => Draft::Draft201909,
        Some(uri) if uri.contains("draft-06") => Draft::Draft6,
        Some(uri) if uri.contains("draft-04") => Draft::Draft4,
        _ => Draft::Draft7,
    }
}

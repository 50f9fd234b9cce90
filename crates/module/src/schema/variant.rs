//! The contract under a module's strictness and enum strategy. Both are applied to the schema once, so that
//! an answer is still checked in a single pass of one validator:
//! * below strictness high, required fields marked `x-cognitive-optional: true` may be absent;
//! * an extensible enum (`oneOf` a string enum and a `{custom, reason}` object) keeps only its enum under
//!   the strict strategy, and bounds `custom` under the extensible one.
//!
//! `rationale` and everything in meta remain required regardless of the marks.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use super::{Contract, Section};
use crate::limits;
use crate::manifest::{EnumStrategy, Strictness};

#[derive(Debug, Default)]
pub(super) struct Variants {
    /// One per combination; an inner `None` means that the schema needed no changes.
    rewritten: [OnceLock<Option<Box<Contract>>>; 4],
    insights_max: OnceLock<Option<u64>>,
}

impl Variants {
    pub(super) fn get<'a>(
        &'a self,
        contract: &'a Contract,
        strictness: Strictness,
        strategy: EnumStrategy,
    ) -> &'a Contract {
        let lax = strictness != Strictness::High;
        let slot = usize::from(lax) + 2 * usize::from(strategy == EnumStrategy::Strict);
        let rewritten = self.rewritten.get(slot).map(|slot| {
            slot.get_or_init(|| {
                let rewrite = Rewrite {
                    document: contract.document(),
                    lax,
                    strategy,
                };
                rewrite.contract(contract).map(Box::new)
            })
        });
        match rewritten {
            Some(Some(rewritten)) => rewritten,
            _ => contract,
        }
    }

    pub(super) fn insights_max(&self, contract: &Contract) -> Option<u64> {
        *self.insights_max.get_or_init(|| {
            let document = contract.document();
            let mut schema = contract.schema(Section::Data)?;
            for key in ["extensions", "insights"] {
                schema = resolve(document, schema).get("properties")?.get(key)?;
            }
            resolve(document, schema).get("maxItems")?.as_u64()
        })
    }
}

struct Rewrite<'a> {
    document: &'a Value,
    lax: bool,
    strategy: EnumStrategy,
}

impl Rewrite<'_> {
    fn contract(&self, contract: &Contract) -> Option<Contract> {
        let mut document = self.document.clone();
        let meta = contract
            .pointer(Section::Meta)
            .and_then(|pointer| pointer.strip_prefix('/'));
        let mut changed = false;
        if let Value::Object(sections) = &mut document {
            for (key, section) in sections.iter_mut() {
                let lax = self.lax && Some(key.as_str()) != meta;
                changed |= self.schema(section, lax);
            }
        }
        changed.then(|| {
            let pointers = Section::ALL.into_iter().filter_map(|section| {
                let pointer = contract.pointer(section)?;
                Some((section, String::from(pointer)))
            });
            Contract::new(document, pointers)
        })
    }

    /// Rewrites a schema and everything inside it; returns whether anything changed.
    fn schema(&self, schema: &mut Value, lax: bool) -> bool {
        match schema {
            Value::Object(map) => {
                let mut changed = lax && self.relax(map);
                changed |= self.extensible(map);
                for (key, inner) in map.iter_mut() {
                    // These contain values, not schemas.
                    if !matches!(key.as_str(), "const" | "enum" | "default" | "examples") {
                        changed |= self.schema(inner, lax);
                    }
                }
                changed
            }
            Value::Array(items) => {
                let mut changed = false;
                for item in items {
                    changed |= self.schema(item, lax);
                }
                changed
            }
            _ => false,
        }
    }

    fn relax(&self, schema: &mut Map<String, Value>) -> bool {
        let Some(Value::Object(properties)) = schema.get("properties") else {
            return false;
        };
        let is_optional = |name: &str| {
            let marked = |schema: &Value| schema.get("x-cognitive-optional") == Some(&Value::Bool(true));
            name != "rationale"
                && properties
                    .get(name)
                    .is_some_and(|property| marked(property) || marked(resolve(self.document, property)))
        };
        let Some(Value::Array(required)) = schema.get("required") else {
            return false;
        };
        let kept: Vec<Value> = required
            .iter()
            .filter(|name| !name.as_str().is_some_and(is_optional))
            .cloned()
            .collect();
        let changed = kept.len() != required.len();
        if changed {
            schema.insert(String::from("required"), Value::Array(kept));
        }
        changed
    }

    fn extensible(&self, schema: &mut Map<String, Value>) -> bool {
        for keyword in ["oneOf", "anyOf"] {
            let Some(Value::Array(branches)) = schema.get_mut(keyword) else {
                continue;
            };
            let is_enum = |branch: &Value| resolve(self.document, branch).get("enum").is_some();
            let is_custom = |branch: &Value| takes_custom(resolve(self.document, branch));
            if !branches.iter().any(is_enum) || !branches.iter().any(is_custom) {
                continue;
            }
            match self.strategy {
                EnumStrategy::Strict => branches.retain(|branch| !is_custom(branch)),
                EnumStrategy::Extensible => {
                    for branch in branches.iter_mut().filter(|branch| is_custom(branch)) {
                        *branch = json!({"allOf": [branch.take(), custom_bounds()]});
                    }
                }
            }
            return true;
        }
        false
    }
}

fn takes_custom(schema: &Value) -> bool {
    let requires = |name: &str| {
        schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|required| required.iter().any(|key| key == name))
    };
    requires("custom")
        && schema
            .get("properties")
            .is_some_and(|it| it.get("custom").is_some())
}

fn custom_bounds() -> Value {
    json!({
        "required": ["custom", "reason"],
        "properties": {
            "custom": {"type": "string", "minLength": 1, "maxLength": limits::CUSTOM_CHARS_MAX},
            "reason": {"type": "string"}
        }
    })
}

/// Follows local references to the target schema; stops at the limit of hops.
fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..limits::REFERENCE_HOPS_MAX {
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| document.pointer(reference.strip_prefix('#')?));
        match target {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

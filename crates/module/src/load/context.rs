//! The schemas that validate a module's context. Invalid references are reported by the checks; here an
//! unavailable schema is omitted, and the type is refused when it is used.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::contract::rebase;
use crate::file_map::{self, FileMap};
use crate::manifest::Context;
use crate::schema::{Contract, Section};

/// Contracts by reference, as written; each has the schema as its input section.
pub(super) fn schemas(files: &FileMap, context: &Context) -> BTreeMap<String, Contract> {
    let accepted = context.accepts.iter().map(|accept| &accept.schema);
    let references = accepted
        .chain(context.emits.iter().map(|emit| &emit.schema))
        .flatten();
    let known = references.filter_map(|reference| Some((reference.clone(), contract(files, reference)?)));
    known.collect()
}

fn contract(files: &FileMap, reference: &str) -> Option<Contract> {
    let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let file = file_map::normalise(path)?;
    let mut document: Value = serde_json::from_slice(files.bytes(&file)?).ok()?;
    // Nested under a key, so that even a reference to the whole document has a pointer.
    rebase(&mut document, "/document");
    let pointer = format!("/document{}", super::percent_decoded(fragment));
    let whole = Value::Object(Map::from_iter([(String::from("document"), document)]));
    whole.pointer(&pointer)?;
    Some(Contract::new(whole, [(Section::Input, pointer)]))
}

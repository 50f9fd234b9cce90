//! Rewrites the references of a schema to JSON pointers from its root: references to `$id`, `$anchor` and
//! `$dynamicAnchor` of the same document, and to the metaschema of its draft, which is added to the document.
//! Admission walks the result and the validator compiles it, so both see the same graph: how references are
//! resolved here cannot make the cost of a schema too low. Nothing is fetched; a reference without a target in
//! the document stays as it is.
//!
//! The names are removed, because they would change what the pointers mean. Only a `$dynamicRef` with several
//! possible targets needs them: then they are kept, as absolute URIs.

mod index;
mod metaschema;

use std::borrow::Cow;

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::admission::Refusal;
use index::{Index, ReferenceTarget};

/// Keywords that name a schema, or refer to one by its name.
const NAMES: &[&str] = &["$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "id"];

pub(super) struct LocalSchema<'a> {
    pub(super) schema: Cow<'a, Value>,
    /// The URI of the root, if the names are kept: references are this and a pointer.
    pub(super) root: Option<String>,
}

/// The schema with local references. `document` is bounded in size.
pub(super) fn localize(document: &Value, draft: Draft) -> Result<LocalSchema<'_>, Refusal> {
    let unchanged = LocalSchema {
        schema: Cow::Borrowed(document),
        root: None,
    };
    if !has_names(document) {
        return Ok(unchanged);
    }
    let mut schema = document.clone();
    metaschema::embed(&mut schema, draft);
    let Some(mut index) = Index::of(&schema, draft) else {
        return Ok(unchanged);
    };
    index.resolve(&schema)?;
    if draft == Draft::Draft201909 && index.has_parts() && has_recursive_references(&schema) {
        // Their target depends on the parts that were entered before.
        return Err(Refusal::EmbeddedId);
    }
    let keeps = index.has_choice();
    let root = keeps.then(|| index.root());
    let prefix = root.clone().unwrap_or_default();
    for place in &index.places {
        let Some(Value::Object(map)) = schema.pointer_mut(&place.pointer) else {
            continue;
        };
        let is_root = place.pointer.is_empty();
        let id = match is_root {
            true => root.as_ref(),
            false => place.id.as_ref(),
        };
        match id {
            Some(id) if keeps => drop(map.insert(String::from("$id"), Value::from(id.as_str()))),
            _ if keeps => drop(map.shift_remove("$id")),
            _ => remove_names(map, draft, is_root),
        }
    }
    for reference in &index.references {
        if let (Some(target), Some(Value::Object(map))) =
            (&reference.target, schema.pointer_mut(&reference.pointer))
        {
            rewrite(map, reference.keyword, target, &prefix, keeps);
        }
    }
    Ok(LocalSchema {
        schema: Cow::Owned(schema),
        root,
    })
}

/// Whether any reference is more than a pointer. Keys of values count too; the result is unchanged then.
fn has_names(document: &Value) -> bool {
    let mut open = vec![document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                let named = map.iter().any(|(key, value)| match key.as_str() {
                    "$ref" => value
                        .as_str()
                        .is_some_and(|reference| reference != "#" && !reference.starts_with("#/")),
                    key => NAMES.contains(&key) && value.is_string(),
                });
                if named {
                    return true;
                }
                open.extend(map.values());
            }
            Value::Array(list) => open.extend(list),
            _ => {}
        }
    }
    false
}

fn has_recursive_references(document: &Value) -> bool {
    let mut open = vec![document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) if map.contains_key("$recursiveRef") => return true,
            Value::Object(map) => open.extend(map.values()),
            Value::Array(list) => open.extend(list),
            _ => {}
        }
    }
    false
}

fn remove_names(map: &mut Map<String, Value>, draft: Draft, is_root: bool) {
    map.shift_remove("$id");
    if draft == Draft::Draft4 {
        map.shift_remove("id");
    }
    if !is_root {
        map.shift_remove("$schema");
    }
    map.shift_remove("$anchor");
    map.shift_remove("$dynamicAnchor");
}

fn rewrite(map: &mut Map<String, Value>, keyword: &str, target: &ReferenceTarget, prefix: &str, keeps: bool) {
    let reference = match target {
        ReferenceTarget::Choice { uri, name, .. } if keeps => {
            map.insert(String::from(keyword), Value::from(format!("{uri}#{name}")));
            return;
        }
        ReferenceTarget::Choice { pointer, .. } | ReferenceTarget::Pointer(pointer) => {
            Value::from(format!("{prefix}#{}", fragment(pointer)))
        }
    };
    if keyword == "$ref" || !map.contains_key("$ref") {
        map.shift_remove(keyword);
        map.insert(String::from("$ref"), reference);
        return;
    }
    // Both references apply.
    map.shift_remove(keyword);
    let mut also = Map::new();
    also.insert(String::from("$ref"), reference);
    let all = map.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(all) = all {
        all.push(Value::Object(also));
    }
}

/// A pointer as the fragment of a URI.
fn fragment(pointer: &str) -> String {
    let mut text = String::with_capacity(pointer.len());
    for byte in pointer.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => text.push(char::from(byte)),
            b'/' | b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' => {
                text.push(char::from(byte));
            }
            b'*' | b'+' | b',' | b';' | b'=' | b':' | b'@' | b'?' => text.push(char::from(byte)),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

//! Derives the media inputs and outputs of a module from its schema, for `modalities` of v2.5.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::draft::{Draft, PROMPT};
use super::edit::InsertAt;
use super::manifest::section;
use super::section_location::{self, data_site, resolve, site};
use super::{DecisionLevel, MigrateError};

/// Maximum nesting depth of a schema that is searched for media.
const DEPTH_MAX: usize = 24;
/// Limit of visited schemas; references may lead to the same schema repeatedly.
const SCHEMAS_MAX: usize = 10_000;

pub(super) fn migrate(draft: &mut Draft) -> Result<(), MigrateError> {
    if draft
        .manifest
        .get(&["modalities"])
        .is_some_and(|given| !given.is_null())
    {
        return Ok(());
    }
    let input_site = match site(draft, "input") {
        Some(site) => resolve(draft, &site)?,
        None => None,
    };
    let output_site = data_site(draft)?;
    let mut kinds = Vec::new();
    let mut unsure = false;
    for site in [input_site, output_site] {
        let mut search = Search::default();
        if let Some(site) = site {
            let root = draft.schema(&site.file)?.map(|document| document.value().clone());
            let start = section_location::value(draft, &site)?.cloned();
            if let (Some(root), Some(start)) = (root, start) {
                search.walk(&root, &start, None, 0);
            }
        }
        unsure |= search.unsure;
        let mut list = vec![String::from("text")];
        let order = ["image", "audio", "video", "document"];
        let found = order.into_iter().filter(|kind| search.found.contains(kind));
        list.extend(found.map(String::from));
        kinds.push(list);
    }
    let output: Vec<_> = kinds
        .pop()
        .unwrap_or_default()
        .into_iter()
        .filter(|kind| kind != "document")
        .collect();
    let input = kinds.pop().unwrap_or_default();
    let takes_media = input.len() > 1;
    let added = section(
        draft,
        "modalities",
        json!({ "input": input, "output": output }),
        InsertAt::Last,
        None,
    )?;
    let names_place = draft
        .files
        .text(PROMPT)
        .is_none_or(|prompt| prompt.contains("$MEDIA_INPUTS"));
    if added && takes_media && !names_place {
        let what = "write $MEDIA_INPUTS at the position of the media; without it they follow the prompt";
        draft.decide(DecisionLevel::Review, PROMPT, &[], what);
    }
    if added && unsure {
        let file = String::from(draft.manifest.file());
        draft.decide(
            DecisionLevel::Review,
            &file,
            &["modalities"],
            "the kind of some media fields cannot be derived from their names; `image` was assumed",
        );
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Search {
    found: BTreeSet<&'static str>,
    unsure: bool,
    seen: usize,
}

impl Search {
    /// `label` is the property of the schema; its name decides the kind of media.
    fn walk(&mut self, root: &Value, schema: &Value, label: Option<&str>, depth: usize) {
        self.seen += 1;
        if depth > DEPTH_MAX || self.seen > SCHEMAS_MAX {
            return;
        }
        match schema {
            Value::Object(map) => {
                if let Some(target) = map.get("$ref").and_then(Value::as_str) {
                    if let Some(next) = target.strip_prefix('#').and_then(|at| root.pointer(at)) {
                        self.walk(root, next, label, depth + 1);
                    }
                    return;
                }
                let properties = map.get("properties").and_then(Value::as_object);
                if properties.is_some_and(holds_media) {
                    self.take(label);
                    return;
                }
                for (property, schema) in properties.into_iter().flatten() {
                    self.walk(root, schema, Some(property), depth + 1);
                }
                for (_, schema) in map.iter().filter(|(key, _)| key.as_str() != "properties") {
                    self.walk(root, schema, label, depth + 1);
                }
            }
            Value::Array(list) => {
                for schema in list {
                    self.walk(root, schema, label, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, label: Option<&str>) {
        const WORDS: &[(&str, &str)] = &[
            ("image", "image"),
            ("photo", "image"),
            ("picture", "image"),
            ("screenshot", "image"),
            ("audio", "audio"),
            ("voice", "audio"),
            ("sound", "audio"),
            ("speech", "audio"),
            ("video", "video"),
            ("clip", "video"),
            ("document", "document"),
            ("pdf", "document"),
            ("page", "document"),
        ];
        let label = label.unwrap_or_default().to_lowercase();
        match WORDS.iter().find(|(word, _)| label.contains(word)) {
            Some((_, kind)) => {
                self.found.insert(kind);
            }
            None => {
                self.found.insert("image");
                self.unsure = true;
            }
        }
    }
}

/// An object with such properties is media: by URL, as base64, as a file or as an upload.
fn holds_media(properties: &Map<String, Value>) -> bool {
    let kinds = ["url", "base64", "file", "upload_ref"];
    let named = |value: &Value| value.as_str().is_some_and(|text| kinds.contains(&text));
    let by_type = properties.get("type").is_some_and(|kind| {
        let listed = kind.get("enum").and_then(Value::as_array);
        kind.get("const").is_some_and(named) || listed.is_some_and(|list| list.iter().any(named))
    });
    properties.contains_key("media_type") || by_type
}

//! Migration of the schema: adds `meta`, renames `output` to `data`, requires a rationale, adds `extensions`
//! for insights and the `error` section. Sections are located as declared in `io`.

use serde_json::{Map, Value, json};

use super::draft::{Draft, SCHEMA};
use super::edit::{self, Edit, InsertAt, Path, path};
use super::schema_templates::{CODE_PATTERN, error_schema, extensions_schema, meta_schema};
use super::section_location::{SectionLocation, collect_references, data_site, resolve, site, value};
use super::{DecisionLevel, MigrateError, json as json_text};
use crate::manifest::Manifest;

pub(super) fn migrate(draft: &mut Draft) -> Result<(), MigrateError> {
    create(draft)?;
    if draft.is_before_v22() || draft.becomes_v25() {
        rename_output(draft)?;
    }
    meta(draft)?;
    error(draft)?;
    rationale(draft)?;
    if draft.is_before_v22() || draft.becomes_v25() || draft.overflow_added {
        extensions(draft)?;
    }
    confidence(draft)
}

/// A module without a schema gets one that requires only what the format requires.
fn create(draft: &mut Draft) -> Result<(), MigrateError> {
    let elsewhere = ["input", "data"]
        .iter()
        .any(|section| site(draft, section).is_none_or(|site| site.file != SCHEMA));
    if draft.files.contains(SCHEMA) || elsewhere {
        return Ok(());
    }
    let skeleton = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "meta": meta_schema(),
        "input": { "type": "object" },
        "data": {
            "type": "object",
            "required": ["rationale"],
            "properties": { "rationale": { "type": "string" } },
        },
        "error": error_schema(draft.to),
    });
    draft.create(
        SCHEMA,
        &json_text::document(&skeleton),
        "creates a schema, since there was none",
    );
    draft.decide(
        DecisionLevel::Review,
        SCHEMA,
        &["input"],
        "there was no schema: describe the input (`input`) and the result (`data`)",
    );
    Ok(())
}

/// Renames `output` to `data`, with all references to it.
fn rename_output(draft: &mut Draft) -> Result<(), MigrateError> {
    let Some(document) = draft.schema(SCHEMA)? else {
        return Ok(());
    };
    if document.get(&["output"]).is_none() || document.get(&["data"]).is_some() {
        return Ok(());
    }
    let rename = Edit::Rename {
        at: Path::new(),
        key: String::from("output"),
        to: String::from("data"),
    };
    draft.edit_schema(SCHEMA, "renames `output` to `data`", &rename)?;
    let mut references = Vec::new();
    if let Some(document) = draft.schema(SCHEMA)? {
        collect_references(document.value(), &mut Path::new(), &mut references);
    }
    for (at, target) in references {
        let rest = target.strip_prefix("#/output");
        let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) else {
            continue;
        };
        let set = Edit::Set {
            at,
            key: String::from("$ref"),
            value: json!(format!("#/data{rest}")),
        };
        draft.edit_schema(SCHEMA, format!("points `{target}` at `data`"), &set)?;
    }
    for key in ["data", "output"] {
        let Some(given) = draft.manifest.get(&["io", key]).and_then(Value::as_str) else {
            continue;
        };
        if let Some(file) = given.strip_suffix("#/output") {
            let set = Edit::Set {
                at: path(&["io"]),
                key: String::from(key),
                value: json!(format!("{file}#/data")),
            };
            draft.edit(format!("points `io.{key}` at `data`"), &set)?;
        }
    }
    if draft.manifest.get(&["compat", "schema_output_alias"]) == Some(&json!("output")) {
        let set = Edit::Set {
            at: path(&["compat"]),
            key: String::from("schema_output_alias"),
            value: json!("data"),
        };
        draft.edit("sets `compat.schema_output_alias` to `data`", &set)?;
    }
    Ok(())
}

/// Adds a missing section; its parent must exist.
fn add_section(draft: &mut Draft, name: &str, schema: Value, place: InsertAt) -> Result<(), MigrateError> {
    let Some(site) = site(draft, name) else {
        return Ok(());
    };
    let Some((key, parents)) = site.at.split_last() else {
        return Ok(());
    };
    let parent = SectionLocation {
        file: site.file.clone(),
        at: parents.to_vec(),
    };
    if !value(draft, &parent)?.is_some_and(Value::is_object) || value(draft, &site)?.is_some() {
        return Ok(());
    }
    let insert = Edit::Insert {
        at: parent.at,
        key: key.clone(),
        value: schema,
        place,
        comment: None,
    };
    draft.edit_schema(&site.file, format!("adds the `{name}` section"), &insert)
}

fn meta(draft: &mut Draft) -> Result<(), MigrateError> {
    let place = match draft.schema(SCHEMA)? {
        Some(document) if document.get(&["$id"]).is_some() => InsertAt::After("$id"),
        Some(document) if document.get(&["$schema"]).is_some() => InsertAt::After("$schema"),
        _ => InsertAt::First,
    };
    add_section(draft, "meta", meta_schema(), place)?;
    let standard = meta_schema();
    let Some(site) = site(draft, "meta") else {
        return Ok(());
    };
    let Some(site) = resolve(draft, &site)? else {
        return Ok(());
    };
    for field in ["confidence", "risk", "explain"] {
        let schema = edit::get(&standard, &path(&["properties", field]))
            .cloned()
            .unwrap_or_default();
        require(draft, &site, "meta", field, &schema)?;
    }
    let mut limit = site.clone();
    limit.at.extend(path(&["properties", "explain", "maxLength"]));
    let given = value(draft, &limit)?.and_then(Value::as_u64);
    let explain = SectionLocation {
        at: limit.at.iter().take(limit.at.len() - 1).cloned().collect(),
        ..limit.clone()
    };
    if given.is_some_and(|given| given <= 280) || !value(draft, &explain)?.is_some_and(Value::is_object) {
        return Ok(());
    }
    let key = String::from("maxLength");
    let edit = if value(draft, &limit)?.is_some() {
        Edit::Set {
            at: explain.at,
            key,
            value: json!(280),
        }
    } else {
        Edit::Insert {
            at: explain.at,
            key,
            value: json!(280),
            place: InsertAt::Last,
            comment: None,
        }
    };
    draft.edit_schema(&site.file, "limits `meta.explain` to 280 characters", &edit)
}

/// Adds a property to `properties` and `required` where missing.
fn require(
    draft: &mut Draft,
    site: &SectionLocation,
    section: &str,
    field: &str,
    schema: &Value,
) -> Result<(), MigrateError> {
    let Some(Value::Object(given)) = value(draft, site)?.cloned() else {
        return Ok(());
    };
    if required_by_parts(draft, site, &given, field)? {
        return Ok(());
    }
    let insert = |at: Path, key: &str, value: Value| Edit::Insert {
        at,
        key: String::from(key),
        value,
        place: InsertAt::Last,
        comment: None,
    };
    match given.get("properties") {
        Some(Value::Object(properties)) if properties.contains_key(field) => {}
        Some(Value::Object(_)) => {
            let mut at = site.at.clone();
            at.push(String::from("properties"));
            let what = format!("describes `{section}.{field}`");
            draft.edit_schema(&site.file, what, &insert(at, field, schema.clone()))?;
        }
        Some(_) => return Ok(()),
        None => {
            let what = format!("describes `{section}.{field}`");
            let properties = json!({ field: schema });
            draft.edit_schema(
                &site.file,
                what,
                &insert(site.at.clone(), "properties", properties),
            )?;
        }
    }
    let what = format!("requires `{section}.{field}`");
    match given.get("required") {
        Some(Value::Array(list)) if list.iter().any(|name| name == field) => Ok(()),
        Some(Value::Array(_)) => {
            let mut at = site.at.clone();
            at.push(String::from("required"));
            let push = Edit::Push {
                at,
                value: json!(field),
            };
            draft.edit_schema(&site.file, what, &push)
        }
        Some(_) => Ok(()),
        None => {
            let mut edit = insert(site.at.clone(), "required", json!([field]));
            if let Edit::Insert { place, .. } = &mut edit {
                *place = InsertAt::After("type");
            }
            draft.edit_schema(&site.file, what, &edit)
        }
    }
}

/// Whether a part of an `allOf` already requires the field.
fn required_by_parts(
    draft: &mut Draft,
    site: &SectionLocation,
    schema: &Map<String, Value>,
    field: &str,
) -> Result<bool, MigrateError> {
    let parts = schema.get("allOf").and_then(Value::as_array).map_or(0, Vec::len);
    for index in 0..parts {
        let mut part = site.clone();
        part.at.extend(path(&["allOf", &index.to_string()]));
        let Some(part) = resolve(draft, &part)? else {
            continue;
        };
        let required = value(draft, &part)?
            .and_then(|part| part.get("required"))
            .and_then(Value::as_array);
        if required.is_some_and(|list| list.iter().any(|name| name == field)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn rationale(draft: &mut Draft) -> Result<(), MigrateError> {
    let Some(given) = data_site(draft)? else {
        return Ok(());
    };
    let Some(Value::Object(schema)) = value(draft, &given)?.cloned() else {
        return Ok(());
    };
    let closed = ["oneOf", "anyOf", "allOf"].iter().any(|key| {
        let branches = schema.get(*key).and_then(Value::as_array);
        branches
            .into_iter()
            .flatten()
            .any(|branch| branch.get("additionalProperties") == Some(&Value::Bool(false)))
    });
    let required = schema.get("required").and_then(Value::as_array);
    let has = required.is_some_and(|list| list.iter().any(|name| name == "rationale"));
    if closed && !has {
        let names: Vec<&str> = given.at.iter().map(String::as_str).collect();
        draft.decide(
            DecisionLevel::Must,
            &given.file,
            &names,
            "the data schema has closed alternatives: add `rationale` (required, a string) to each of them",
        );
        return Ok(());
    }
    require(draft, &given, "data", "rationale", &json!({ "type": "string" }))
}

/// Adds `extensions` for insights if the manifest allows them.
fn extensions(draft: &mut Draft) -> Result<(), MigrateError> {
    let overflow = Manifest::read(draft.manifest.map()).overflow;
    let Some(data) = data_site(draft)? else {
        return Ok(());
    };
    let mut properties = data.clone();
    properties.at.push(String::from("properties"));
    let Some(Value::Object(described)) = value(draft, &properties)? else {
        return Ok(());
    };
    if !overflow.enabled || described.contains_key("extensions") {
        return Ok(());
    }
    let definitions = SectionLocation {
        file: data.file.clone(),
        at: path(&["$defs"]),
    };
    let schema = extensions_schema(overflow.max_items);
    match value(draft, &definitions)? {
        None => {
            let insert = Edit::Insert {
                at: Path::new(),
                key: String::from("$defs"),
                value: json!({ "extensions": schema }),
                place: InsertAt::Last,
                comment: None,
            };
            draft.edit_schema(&data.file, "adds `$defs.extensions`", &insert)?;
        }
        Some(Value::Object(given)) if !given.contains_key("extensions") => {
            let insert = Edit::Insert {
                at: definitions.at,
                key: String::from("extensions"),
                value: schema,
                place: InsertAt::Last,
                comment: None,
            };
            draft.edit_schema(&data.file, "adds `$defs.extensions`", &insert)?;
        }
        Some(_) => {}
    }
    let insert = Edit::Insert {
        at: properties.at,
        key: String::from("extensions"),
        value: json!({ "$ref": "#/$defs/extensions" }),
        place: InsertAt::Last,
        comment: None,
    };
    draft.edit_schema(&data.file, "adds `data.extensions`", &insert)
}

/// In older formats confidence is part of the data. It is kept there for existing readers.
fn confidence(draft: &mut Draft) -> Result<(), MigrateError> {
    if !draft.is_before_v22() {
        return Ok(());
    }
    let Some(data) = data_site(draft)? else {
        return Ok(());
    };
    let mut field = data.clone();
    field.at.extend(path(&["properties", "confidence"]));
    if value(draft, &field)?.is_some() {
        let names: Vec<&str> = field.at.iter().map(String::as_str).collect();
        draft.decide(
            DecisionLevel::Review,
            &data.file,
            &names,
            "confidence is now part of `meta`; remove it from `data` when no reader uses it there",
        );
    }
    Ok(())
}

fn error(draft: &mut Draft) -> Result<(), MigrateError> {
    add_section(draft, "error", error_schema(draft.to), InsertAt::After("data"))?;
    if !draft.becomes_v25() {
        return Ok(());
    }
    let Some(site) = site(draft, "error") else {
        return Ok(());
    };
    let Some(site) = resolve(draft, &site)? else {
        return Ok(());
    };
    let mut properties = site.clone();
    properties.at.push(String::from("properties"));
    let Some(Value::Object(given)) = value(draft, &properties)?.cloned() else {
        return Ok(());
    };
    let standard = error_schema(draft.to);
    for field in ["recoverable", "suggestion", "details"] {
        if !given.contains_key(field) {
            let schema = edit::get(&standard, &path(&["properties", field]))
                .cloned()
                .unwrap_or_default();
            let insert = Edit::Insert {
                at: properties.at.clone(),
                key: String::from(field),
                value: schema,
                place: InsertAt::Last,
                comment: None,
            };
            draft.edit_schema(&site.file, format!("describes `error.{field}`"), &insert)?;
        }
    }
    let Some(Value::Object(code)) = given.get("code") else {
        return Ok(());
    };
    if ["enum", "const", "oneOf", "anyOf", "$ref", "pattern"]
        .iter()
        .any(|key| code.contains_key(*key))
    {
        if !code.contains_key("pattern") {
            let mut at: Vec<&str> = properties.at.iter().map(String::as_str).collect();
            at.push("code");
            draft.decide(
                DecisionLevel::Review,
                &site.file,
                &at,
                "v2.5 has codes E1000 to E4999, and E5000 to E9999 for the module's own (`error_codes`): map these names",
            );
        }
        return Ok(());
    }
    let mut at = properties.at;
    at.push(String::from("code"));
    let insert = Edit::Insert {
        at,
        key: String::from("pattern"),
        value: json!(CODE_PATTERN),
        place: InsertAt::Last,
        comment: None,
    };
    draft.edit_schema(&site.file, "adds the v2.5 pattern to `error.code`", &insert)
}

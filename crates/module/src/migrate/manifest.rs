//! Migration of the manifest: tier and the values that follow from it, policies in the v2.2 spelling, and the
//! sections that v2.2 introduced. Values that the author wrote are never changed.

use serde_json::{Map, Value, json};

use super::draft::Draft;
use super::edit::{Edit, InsertAt, Path, path};
use super::{DecisionLevel, MigrateError};
use crate::manifest::{Manifest, Tier};

pub(super) fn migrate(draft: &mut Draft) -> Result<(), MigrateError> {
    tier(draft)?;
    excludes(draft)?;
    if draft.is_before_v22() || draft.becomes_v25() {
        context(draft)?;
        policies(draft)?;
    }
    overflow_and_enums(draft)?;
    if draft.is_before_v22() {
        failure(draft)?;
        io(draft)?;
        compat(draft)?;
        draft.move_examples()?;
    }
    if draft.to == crate::Format::V2_5 {
        response(draft)?;
    }
    Ok(())
}

/// Adds a top-level key unless it has a value. A key without a value counts as absent.
pub(super) fn section(
    draft: &mut Draft,
    key: &str,
    value: Value,
    place: InsertAt,
    comment: Option<&'static str>,
) -> Result<bool, MigrateError> {
    let what = format!("adds `{key}`");
    let edit = match draft.manifest.get(&[key]) {
        Some(Value::Null) => Edit::Set {
            at: Path::new(),
            key: String::from(key),
            value,
        },
        Some(_) => return Ok(false),
        None => Edit::Insert {
            at: Path::new(),
            key: String::from(key),
            value,
            place,
            comment,
        },
    };
    draft.edit(what, &edit)?;
    Ok(true)
}

/// The effective tier: the declared one or the default.
fn tier_of(draft: &Draft) -> Tier {
    Manifest::read(draft.manifest.map()).tier
}

fn tier(draft: &mut Draft) -> Result<(), MigrateError> {
    let added = section(
        draft,
        "tier",
        json!(Tier::Decision.as_str()),
        InsertAt::After("responsibility"),
        None,
    )?;
    if added {
        let file = String::from(draft.manifest.file());
        draft.decide(
            DecisionLevel::Review,
            &file,
            &["tier"],
            "the tier was set to `decision`: use `exec` if answers are acted on without review, `exploration` if they are suggestions only",
        );
    }
    if draft.is_before_v22() {
        let strictness = json!(tier_of(draft).strictness());
        section(
            draft,
            "schema_strictness",
            strictness,
            InsertAt::After("tier"),
            None,
        )?;
    }
    Ok(())
}

fn excludes(draft: &mut Draft) -> Result<(), MigrateError> {
    let place = if draft.manifest.get(&["schema_strictness"]).is_some() {
        InsertAt::After("schema_strictness")
    } else {
        InsertAt::After("tier")
    };
    if section(draft, "excludes", json!([]), place, None)? {
        let file = String::from(draft.manifest.file());
        draft.decide(
            DecisionLevel::Review,
            &file,
            &["excludes"],
            "`excludes` is empty: list what the module must not do",
        );
    }
    Ok(())
}

fn overflow_and_enums(draft: &mut Draft) -> Result<(), MigrateError> {
    let tier = tier_of(draft);
    let overflow = json!(tier.overflow());
    draft.overflow_added = section(
        draft,
        "overflow",
        overflow,
        InsertAt::Last,
        Some("Destination of observations without a field in the schema."),
    )?;
    let strategy = json!({ "strategy": tier.enums().strategy });
    section(draft, "enums", strategy, InsertAt::Last, None)?;
    Ok(())
}

fn failure(draft: &mut Draft) -> Result<(), MigrateError> {
    let failure = json!({
        "contract": "error_union",
        "partial_allowed": true,
        "must_return_error_schema": true,
    });
    section(draft, "failure", failure, InsertAt::Last, None)?;
    Ok(())
}

/// References to the parts of the schema; `output` is called `data` since v2.2.
fn io(draft: &mut Draft) -> Result<(), MigrateError> {
    let whole = json!({
        "input": "./schema.json#/input",
        "data": "./schema.json#/data",
        "meta": "./schema.json#/meta",
        "error": "./schema.json#/error",
    });
    if section(draft, "io", whole.clone(), InsertAt::Last, None)? {
        return Ok(());
    }
    let at = path(&["io"]);
    if draft.manifest.get(&["io", "output"]).is_some() && draft.manifest.get(&["io", "data"]).is_none() {
        let rename = Edit::Rename {
            at,
            key: String::from("output"),
            to: String::from("data"),
        };
        draft.edit("renames `io.output` to `io.data`", &rename)?;
    }
    fill(draft, "io", &whole)
}

fn compat(draft: &mut Draft) -> Result<(), MigrateError> {
    let compat = json!({
        "accepts_v21_payload": true,
        "runtime_auto_wrap": true,
        "schema_output_alias": "data",
    });
    let comment = Some("Answers in the older form are still accepted and wrapped.");
    if section(draft, "compat", compat.clone(), InsertAt::Last, comment)? {
        return Ok(());
    }
    fill(draft, "compat", &compat)
}

/// Adds the keys that an existing section lacks.
fn fill(draft: &mut Draft, name: &str, defaults: &Value) -> Result<(), MigrateError> {
    if !draft.manifest.get(&[name]).is_some_and(Value::is_object) {
        return Ok(());
    }
    for (key, value) in defaults.as_object().into_iter().flatten() {
        if draft.manifest.get(&[name, key]).is_none() {
            let insert = Edit::Insert {
                at: path(&[name]),
                key: key.clone(),
                value: value.clone(),
                place: InsertAt::Last,
                comment: None,
            };
            draft.edit(format!("adds `{name}.{key}`"), &insert)?;
        }
    }
    Ok(())
}

fn response(draft: &mut Draft) -> Result<(), MigrateError> {
    let mode = json!(tier_of(draft).response_mode());
    let response = json!({ "mode": mode, "chunk_type": "delta" });
    if section(draft, "response", response, InsertAt::Last, None)? {
        let file = String::from(draft.manifest.file());
        draft.decide(
            DecisionLevel::Review,
            &file,
            &["response"],
            "`response.mode` follows from the tier: `sync`, `streaming` or `both`",
        );
    }
    Ok(())
}

/// v1 writes `context: fork`, v2 `context: {mode: fork}`.
fn context(draft: &mut Draft) -> Result<(), MigrateError> {
    let Some(Value::String(mode)) = draft.manifest.get(&["context"]) else {
        return Ok(());
    };
    let edit = Edit::Set {
        at: Path::new(),
        key: String::from("context"),
        value: json!({ "mode": mode }),
    };
    draft.edit("writes `context` as a section", &edit)
}

/// `network_allowed: false` becomes `network: deny`.
fn policies(draft: &mut Draft) -> Result<(), MigrateError> {
    let Some(Value::Object(given)) = draft.manifest.get(&["policies"]).cloned() else {
        return Ok(());
    };
    for (key, value) in &given {
        let (Some(name), Value::Bool(allowed)) = (key.strip_suffix("_allowed"), value) else {
            continue;
        };
        if name == "tools" && !*allowed {
            tools(draft, &given)?;
            continue;
        }
        policy(draft, &given, name, *allowed)?;
    }
    Ok(())
}

fn policy(
    draft: &mut Draft,
    given: &Map<String, Value>,
    name: &str,
    allowed: bool,
) -> Result<(), MigrateError> {
    let key = format!("{name}_allowed");
    let access = if allowed { "allow" } else { "deny" };
    let what = format!("writes `policies.{key}` as `{name}: {access}`");
    match given.get(name) {
        None => {
            let rename = Edit::Rename {
                at: path(&["policies"]),
                key: key.clone(),
                to: String::from(name),
            };
            draft.edit(what, &rename)?;
            let set = Edit::Set {
                at: path(&["policies"]),
                key: String::from(name),
                value: json!(access),
            };
            draft.manifest_edit(&set)
        }
        Some(Value::String(other)) if other == access => {
            let remove = Edit::Remove {
                at: path(&["policies"]),
                key: key.clone(),
            };
            draft.edit(
                format!("removes `policies.{key}`, which repeats `{name}`"),
                &remove,
            )
        }
        Some(_) => {
            let file = String::from(draft.manifest.file());
            draft.decide(
                DecisionLevel::Must,
                &file,
                &["policies", &key],
                format!("`policies.{name}` and `policies.{key}` disagree: keep one"),
            );
            Ok(())
        }
    }
}

/// `policies.tools_allowed: false` becomes a tools section in which nothing is allowed.
fn tools(draft: &mut Draft, given: &Map<String, Value>) -> Result<(), MigrateError> {
    let remove = if given.len() == 1 {
        Edit::Remove {
            at: Path::new(),
            key: String::from("policies"),
        }
    } else {
        Edit::Remove {
            at: path(&["policies"]),
            key: String::from("tools_allowed"),
        }
    };
    let what = "writes `policies.tools_allowed: false` as a `tools` section";
    let none = json!({ "policy": "deny_by_default", "allowed": [] });
    match draft.manifest.get(&["tools"]) {
        None | Some(Value::Null) => {
            section(draft, "tools", none, InsertAt::After("policies"), None)?;
        }
        Some(Value::Object(tools)) => {
            let tools = tools.clone();
            deny_all(draft, &tools, &none)?;
        }
        Some(_) => return Ok(()),
    }
    draft.edit(what, &remove)
}

fn deny_all(draft: &mut Draft, tools: &Map<String, Value>, none: &Value) -> Result<(), MigrateError> {
    for (key, value) in none.as_object().into_iter().flatten() {
        match tools.get(key) {
            Some(same) if same == value => {}
            Some(_) => {
                let set = Edit::Set {
                    at: path(&["tools"]),
                    key: key.clone(),
                    value: value.clone(),
                };
                draft.edit(format!("sets `tools.{key}`, since no tool was allowed"), &set)?;
            }
            None => {
                let insert = Edit::Insert {
                    at: path(&["tools"]),
                    key: key.clone(),
                    value: value.clone(),
                    place: InsertAt::Last,
                    comment: None,
                };
                draft.edit(format!("adds `tools.{key}`"), &insert)?;
            }
        }
    }
    Ok(())
}

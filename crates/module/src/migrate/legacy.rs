//! Converts v0 and v1 modules to `module.yaml`, `prompt.md` and `schema.json`: the front matter becomes the
//! manifest unchanged, including comments; the rest becomes prompt and schema. Constraints of v0 and v1
//! become policies where an equivalent exists, and stay constraints otherwise.

use serde_json::{Map, Value, json};

use super::draft::{Document, Draft, PROMPT, SCHEMA, text};
use super::edit::{Edit, InsertAt, Path, path};
use super::manifest::section;
use super::section_location::{self, collect_references};
use super::{DecisionLevel, MigrateError, json as json_text, yaml};
use crate::document::{parse_yaml, split_front_matter};
use crate::file_map::FileMap;
use crate::format::Format;
use crate::load;

const MANIFEST: &str = "module.yaml";

pub(super) fn open(files: &FileMap, family: Format, to: Format) -> Result<Draft, MigrateError> {
    let old = if family == Format::V1 {
        "MODULE.md"
    } else {
        "module.md"
    };
    let (front, body) = split(files, old, text(files, old)?)?;
    let taken: &[&str] = if family == Format::V1 {
        &[PROMPT]
    } else {
        &[PROMPT, SCHEMA]
    };
    if let Some(taken) = taken.iter().find(|file| files.contains(file)) {
        return Err(MigrateError {
            file: String::from(*taken),
            line: 0,
            message: format!("would be overwritten by the migration of {old}"),
            hint: format!("{family} does not use {taken}: rename or remove it first"),
        });
    }
    let manifest = Document::yaml(MANIFEST, &front).map_err(|refusal| MigrateError {
        file: String::from(old),
        // The front matter begins below its opening line.
        line: if refusal.line > 0 { refusal.line + 1 } else { 0 },
        ..refusal
    })?;
    let mut draft = Draft::new(family, to, files.clone(), manifest);
    draft.create(
        MANIFEST,
        &front,
        format!("created from the front matter of {old}"),
    );
    if family == Format::V1 {
        draft.create(PROMPT, &body, format!("created from the text of {old}"));
        constraints_of_manifest(&mut draft)?;
    } else {
        loose_files(&mut draft, &body)?;
    }
    discard(&mut draft, old);
    Ok(draft)
}

/// Removes a file whose contents were moved.
fn discard(draft: &mut Draft, file: &str) {
    if draft.files.remove(file).is_some() {
        draft.change(file, "deleted, since its contents were moved");
    }
}

/// Front matter and body, with unchanged line endings. A v0 module without front matter may have lines such
/// as `name: x` in its text; these become the manifest, and the text is kept complete.
fn split(files: &FileMap, file: &str, whole: &str) -> Result<(String, String), MigrateError> {
    let whole = whole.strip_prefix('\u{feff}').unwrap_or(whole);
    if let Some(parts) = split_front_matter(whole) {
        let body = whole.get(parts.body).unwrap_or_default();
        return Ok((
            whole.get(parts.yaml).map(String::from).unwrap_or_default(),
            String::from(body.trim_start_matches(['\n', '\r'])),
        ));
    }
    let loaded = load(files);
    let source = loaded
        .module
        .filter(|_| file == "module.md")
        .map(|module| module.source);
    let source = source.ok_or_else(|| MigrateError {
        file: String::from(file),
        line: 1,
        message: String::from("has no closed front matter"),
        hint: format!("{file} begins with a line `---`, then keys such as `name:`, then a line `---`"),
    })?;
    let known = source.iter().filter(|(key, _)| key.as_str() != "constraints");
    let front = known.map(|(key, value)| yaml::block(key, value)).collect();
    Ok((front, String::from(whole)))
}

/// `constraints` of v1, which are part of the manifest.
fn constraints_of_manifest(draft: &mut Draft) -> Result<(), MigrateError> {
    let Some(Value::Object(given)) = draft.manifest.get(&["constraints"]).cloned() else {
        return Ok(());
    };
    let settled = settle(draft, &given)?;
    if settled.len() == given.len() {
        let remove = Edit::Remove {
            at: Path::new(),
            key: String::from("constraints"),
        };
        return draft.edit(
            "removes `constraints`, which policies and required fields replace",
            &remove,
        );
    }
    for key in settled {
        let remove = Edit::Remove {
            at: path(&["constraints"]),
            key: key.clone(),
        };
        draft.edit(
            format!("removes `constraints.{key}`, which a policy or a required field replaces"),
            &remove,
        )?;
    }
    Ok(())
}

/// Replaces constraints that have an equivalent in v2.2 and returns their keys. Since v2.2 every answer has
/// confidence and rationale, so constraints that require them are dropped.
fn settle(draft: &mut Draft, given: &Map<String, Value>) -> Result<Vec<String>, MigrateError> {
    const POLICIES: &[(&str, &str)] = &[
        ("no_network", "network"),
        ("no_external_network", "network"),
        ("no_side_effects", "side_effects"),
        ("no_file_write", "filesystem_write"),
        ("no_filesystem_write", "filesystem_write"),
        ("no_code_execution", "code_execution"),
    ];
    let mut settled = Vec::new();
    for (key, value) in given {
        let policy = POLICIES.iter().find(|(name, _)| name == key);
        match (policy, value) {
            (Some((_, policy)), Value::Bool(denied)) => {
                deny(draft, policy)?;
                if !denied {
                    draft.decide(
                        DecisionLevel::Review,
                        MANIFEST,
                        &["policies", policy],
                        format!("`{key}` was false, but the default is deny: write `{policy}: allow` if the module needs it"),
                    );
                }
                settled.push(key.clone());
            }
            (None, Value::Bool(_)) if matches!(key.as_str(), "require_confidence" | "require_rationale") => {
                settled.push(key.clone());
            }
            _ => {}
        }
    }
    Ok(settled)
}

fn deny(draft: &mut Draft, policy: &str) -> Result<(), MigrateError> {
    let place = InsertAt::After("excludes");
    if section(draft, "policies", json!({ policy: "deny" }), place, None)? {
        return Ok(());
    }
    let given = draft.manifest.get(&["policies"]).and_then(Value::as_object);
    if given
        .is_none_or(|given| given.contains_key(policy) || given.contains_key(&format!("{policy}_allowed")))
    {
        return Ok(());
    }
    let insert = Edit::Insert {
        at: path(&["policies"]),
        key: String::from(policy),
        value: json!("deny"),
        place: InsertAt::Last,
        comment: None,
    };
    draft.edit(format!("adds `policies.{policy}`"), &insert)
}

/// v0: prompt, constraints and the two schemas are separate files.
fn loose_files(draft: &mut Draft, body: &str) -> Result<(), MigrateError> {
    if draft.files.contains("prompt.txt") {
        let prompt = String::from(text(&draft.files, "prompt.txt")?);
        draft.create(PROMPT, &prompt, "created from the text of prompt.txt");
        discard(draft, "prompt.txt");
        if !body.trim().is_empty() {
            let names = ["README.md", "NOTES.md", "MODULE-NOTES.md"];
            let free = names.iter().find(|name| !draft.files.contains(name));
            let free = free.copied().unwrap_or("MODULE-NOTES.md");
            draft.create(
                free,
                body,
                "created from the text of module.md, which is not part of the prompt",
            );
        }
    } else {
        draft.create(
            PROMPT,
            body,
            "created from the text of module.md, since there is no prompt.txt",
        );
    }
    schemas(draft)?;
    if !draft.files.contains("constraints.yaml") {
        return Ok(());
    }
    let constraints = parse_yaml(text(&draft.files, "constraints.yaml")?).map_err(|error| MigrateError {
        file: String::from("constraints.yaml"),
        line: error.line.unwrap_or_default(),
        message: format!("not valid YAML: {}", error.message),
        hint: String::from("fix constraints.yaml first"),
    })?;
    if let Value::Object(given) = constraints {
        let rest = settle_nested(draft, given)?;
        if !rest.is_empty() {
            section(draft, "constraints", Value::Object(rest), InsertAt::Last, None)?;
        }
    }
    discard(draft, "constraints.yaml");
    Ok(())
}

/// v0 groups its constraints (`operational`, `output_quality`); constraints without equivalent stay in their
/// group.
fn settle_nested(draft: &mut Draft, given: Map<String, Value>) -> Result<Map<String, Value>, MigrateError> {
    let settled = settle(draft, &given)?;
    let mut rest = Map::new();
    for (key, value) in given {
        match value {
            _ if settled.contains(&key) => {}
            Value::Object(group) => {
                let settled = settle(draft, &group)?;
                let group: Map<_, _> = group
                    .into_iter()
                    .filter(|(key, _)| !settled.contains(key))
                    .collect();
                if !group.is_empty() {
                    rest.insert(key, Value::Object(group));
                }
            }
            value => {
                rest.insert(key, value);
            }
        }
    }
    Ok(rest)
}

/// Merges two schema files into two sections of one and adapts their local references.
fn schemas(draft: &mut Draft) -> Result<(), MigrateError> {
    let mut whole = Map::new();
    whole.insert(
        String::from("$schema"),
        json!("http://json-schema.org/draft-07/schema#"),
    );
    for (file, name) in [("input.schema.json", "input"), ("output.schema.json", "data")] {
        if !draft.files.contains(file) {
            continue;
        }
        let mut schema = section_location::read(draft, file)?;
        let mut references = Vec::new();
        collect_references(&schema, &mut Path::new(), &mut references);
        for (at, target) in references {
            let Some(inner) = target
                .strip_prefix('#')
                .filter(|rest| rest.is_empty() || rest.starts_with('/'))
            else {
                continue;
            };
            let set = Edit::Set {
                at,
                key: String::from("$ref"),
                value: json!(format!("#/{name}{inner}")),
            };
            set.apply(&mut schema);
        }
        if let Value::Object(schema) = &mut schema {
            // An `$id` inside another document would change the base of local references.
            schema.shift_remove("$id");
            if let Some(dialect) = schema.shift_remove("$schema") {
                whole.insert(String::from("$schema"), dialect);
            }
        }
        whole.insert(String::from(name), schema);
        discard(draft, file);
    }
    if whole.len() > 1 {
        let text = json_text::document(&Value::Object(whole));
        draft.create(
            SCHEMA,
            &text,
            "created from input.schema.json and output.schema.json",
        );
    }
    Ok(())
}

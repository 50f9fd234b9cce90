//! Modules from before `module.yaml`, laid out in the three files of today: the front matter becomes the
//! manifest as it stands (comments and all), the rest becomes prompt and schema. What v0 and v1 call
//! constraints becomes policies where there is one, and stays a constraint otherwise.

use serde_json::{Map, Value, json};

use super::draft::{Document, Draft, PROMPT, SCHEMA, text};
use super::edit::{Edit, Path, InsertAt, path};
use super::manifest::section;
use super::section_location::{self, collect_references};
use super::{MigrateError, DecisionLevel, json as json_text, yaml};
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
            message: format!("stands where the migration of {old} would write"),
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
    draft.create(MANIFEST, &front, format!("takes the front matter of {old}"));
    if family == Format::V1 {
        draft.create(PROMPT, &body, format!("takes the text of {old}"));
        constraints_of_manifest(&mut draft)?;
    } else {
        loose_files(&mut draft, &body)?;
    }
    discard(&mut draft, old);
    Ok(draft)
}

/// A file whose contents have gone elsewhere.
fn discard(draft: &mut Draft, file: &str) {
    if draft.files.remove(file).is_some() {
        draft.change(file, "goes, since its contents stand elsewhere now");
    }
}

/// Front matter and body. Line ends stay as they are. The earliest modules have no front matter but
/// lines such as `name: x` in their text; those become a manifest, and the text is kept whole.
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

/// `constraints` of v1, which stand in the manifest.
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
            "drops `constraints`, which policies and required fields replace",
            &remove,
        );
    }
    for key in settled {
        let remove = Edit::Remove {
            at: path(&["constraints"]),
            key: key.clone(),
        };
        draft.edit(
            format!("drops `constraints.{key}`, which is settled elsewhere now"),
            &remove,
        )?;
    }
    Ok(())
}

/// Constraints that have a better place now; returns their keys. An answer always carries confidence and
/// rationale since v2.2, so demanding them is no longer anything special.
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
                        format!("`{key}` was false, but nothing is allowed unasked: write `{policy}: allow` if the module needs it"),
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

/// v0: prompt, constraints and the two schemas stand in files of their own.
fn loose_files(draft: &mut Draft, body: &str) -> Result<(), MigrateError> {
    if draft.files.contains("prompt.txt") {
        let prompt = String::from(text(&draft.files, "prompt.txt")?);
        draft.create(PROMPT, &prompt, "takes the text of prompt.txt");
        discard(draft, "prompt.txt");
        if !body.trim().is_empty() {
            let names = ["README.md", "NOTES.md", "MODULE-NOTES.md"];
            let free = names.iter().find(|name| !draft.files.contains(name));
            let free = free.copied().unwrap_or("MODULE-NOTES.md");
            draft.create(
                free,
                body,
                "takes the text of module.md, which is not part of the prompt",
            );
        }
    } else {
        draft.create(
            PROMPT,
            body,
            "takes the text of module.md, since there is no prompt.txt",
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
        hint: String::from("mend constraints.yaml first"),
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

/// v0 groups its constraints (`operational`, `output_quality`); what is not settled keeps its group.
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

/// Two schema files become two sections of one; their inner references move along.
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
            // Inside another document, an `$id` would turn local references into foreign ones.
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
        draft.create(SCHEMA, &text, "takes input.schema.json and output.schema.json");
    }
    Ok(())
}

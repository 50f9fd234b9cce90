//! Media in schemas: patterns of `media_type` that refuse types allowed by the manifest, and whether a schema
//! has a field for media.

use jsonschema::Draft;
use serde_json::{Map, Value, json};

use crate::diagnostic::{Diagnostic, Rule};
use crate::document::{EntryPart, join};
use crate::load::LoadContext;
use crate::manifest::{MediaConstraints, Modality};
use crate::module::Module;
use crate::schema::{CompiledSchema, Section, Visit, walk};

pub(super) fn check(reading: &mut LoadContext<'_>) {
    let mut found = Vec::new();
    if let Some(module) = &reading.module
        && module.source.contains_key("modalities")
    {
        let wanted = allowed_types(
            &module.manifest.modalities.input,
            &module.manifest.modalities.constraints,
        );
        visit_reachable(module, Section::Input, &mut |pointer, schema| {
            let media_type = schema
                .get("properties")
                .and_then(|properties| properties.get("media_type"));
            let Some(pattern) = media_type.and_then(|schema| schema.get("pattern")) else {
                return;
            };
            let refused: Vec<&str> = refused_by(pattern, &wanted);
            if let Some(first) = refused.first() {
                let place = join(&join(&join(pointer, "properties"), "media_type"), "pattern");
                let message = format!("the pattern refuses `{first}`, which the manifest allows");
                let diagnostic = Diagnostic::new(Rule::MEDIA_PATTERN, message);
                found.push(
                    diagnostic
                        .at(reading.in_contract(&place, EntryPart::Value))
                        .hint("`^(image|audio|video|application)/[a-z0-9.+-]+$` accepts every kind of media"),
                );
            }
        });
    }
    reading.report.extend(found);
}

/// The media types of the declared modalities.
fn allowed_types(modalities: &[Modality], constraints: &MediaConstraints) -> Vec<String> {
    let mut types = Vec::new();
    for modality in modalities {
        match modality {
            Modality::Text => {}
            Modality::Image => types.extend(constraints.allowed_image_types.iter().cloned()),
            Modality::Audio => types.extend(constraints.allowed_audio_types.iter().cloned()),
            Modality::Video => types.extend(constraints.allowed_video_types.iter().cloned()),
            Modality::Document => types.push(String::from("application/pdf")),
        }
    }
    types
}

fn refused_by<'a>(pattern: &Value, types: &'a [String]) -> Vec<&'a str> {
    let schema = json!({"type": "string", "pattern": pattern});
    let Ok(validator) = CompiledSchema::new(schema, Draft::Draft7) else {
        return Vec::new();
    };
    types
        .iter()
        .filter(|media_type| {
            media_type.contains('/') && !media_type.contains('*') && !validator.is_valid(&json!(media_type))
        })
        .map(String::as_str)
        .collect()
}

/// Whether a section has a field for media: a reference by URL, base64, file or upload.
pub(super) fn has_place_for_media(module: &Module, section: Section) -> bool {
    let mut hit = false;
    visit_reachable(module, section, &mut |_, schema| {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return;
        };
        let kinds = ["url", "base64", "file", "upload_ref"];
        let named = |value: &Value| value.as_str().is_some_and(|text| kinds.contains(&text));
        let by_type = properties.get("type").is_some_and(|kind| {
            kind.get("const").is_some_and(named)
                || kind
                    .get("enum")
                    .and_then(Value::as_array)
                    .is_some_and(|list| list.iter().any(named))
        });
        hit |= properties.contains_key("media_type") || by_type;
    });
    hit
}

/// Visits a section and all schemas reachable by references, each pointer once.
fn visit_reachable<'a>(
    module: &'a Module,
    section: Section,
    visit: &mut dyn FnMut(&str, &'a Map<String, Value>),
) {
    let document = module.contract.document();
    let mut pending: Vec<String> = module
        .contract
        .pointer(section)
        .map(String::from)
        .into_iter()
        .collect();
    let mut seen = std::collections::BTreeSet::new();
    while let Some(root) = pending.pop() {
        if !seen.insert(root.clone()) {
            continue;
        }
        let Some(schema) = document.pointer(&root) else {
            continue;
        };
        walk(schema, &root, &mut |pointer, schema| {
            visit(pointer, schema);
            if let Some(target) = schema
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|r| r.strip_prefix('#'))
            {
                pending.push(String::from(target));
            }
            Visit::Descend
        });
    }
}

//! Checks whether an input matches a module, before any model is called.

use serde_json::Value;

use super::error::ErrorBody;
use super::schema_errors::{check_section, error_of};
use super::structure::ShapeViolation;
use crate::code::Code;
use crate::manifest::Modality;
use crate::media;
use crate::module::Module;
use crate::schema::Section;

/// Validates `input` against the module's input schema. The error lists all problems. Its code is specific if
/// all problems are of one kind (E1002 missing, E1003 type), else E1001.
pub fn check_input(module: &Module, input: &Value) -> Result<(), Box<ErrorBody>> {
    let mut found = Vec::new();
    check_section(&module.contract, Section::Input, input, &mut found)?;
    if found.is_empty() {
        return Ok(());
    }
    let modalities = &module.manifest.modalities.input;
    if modalities.iter().any(|modality| *modality != Modality::Text) {
        found = explain_media(input, found);
    }
    let first = found.first().map_or(Code::E1001, code_of);
    let code = if found.iter().all(|violation| code_of(violation) == first) {
        first
    } else {
        Code::E1001
    };
    let error = error_of(code, found.first(), &found, "the input");
    Err(Box::new(error.detail("stage", "input")))
}

/// A schema reports only that a media item matches none of its variants; this adds the problems of the
/// intended variant.
fn explain_media(input: &Value, found: Vec<ShapeViolation>) -> Vec<ShapeViolation> {
    let mut explained: Vec<ShapeViolation> = Vec::with_capacity(found.len());
    for violation in found {
        let item = input
            .pointer(&violation.pointer)
            .filter(|item| matches!(&*violation.keyword, "oneOf" | "anyOf") && looks_like_media(item));
        let mut inner = item.map(media::check_input).unwrap_or_default();
        for inner in &mut inner {
            inner.pointer.insert_str(0, &violation.pointer);
        }
        if inner.is_empty() {
            inner.push(violation);
        }
        for new in inner {
            let same = |old: &ShapeViolation| old.pointer == new.pointer && old.message == new.message;
            if !explained.iter().any(same) {
                explained.push(new);
            }
        }
    }
    explained
}

fn looks_like_media(item: &Value) -> bool {
    ["media_type", "data", "url", "path", "upload_id"]
        .iter()
        .any(|key| item.get(key).is_some())
}

/// The code of one problem of an input. Schema violations have the codes of answers.
fn code_of(violation: &ShapeViolation) -> Code {
    let of_an_answer = [Code::E3001, Code::E3005].contains(&violation.code);
    match &*violation.keyword {
        _ if !of_an_answer => violation.code,
        "required" => Code::E1002,
        "type" => Code::E1003,
        _ => Code::E1001,
    }
}

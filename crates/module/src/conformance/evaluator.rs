//! Evaluates the subjects of a vector with the same checks that runs use.

use std::fmt;

use serde_json::Value;

use super::composed;
use super::vector::Vector;
use crate::code::Code;
use crate::diagnostic::Severity;
use crate::envelope::{self, CheckOptions, ErrorBody, Profile, check_input, check_object, check_structure};
use crate::file_map::FileMap;
use crate::load::load;
use crate::media;
use crate::module::Module;
use crate::stream::{self, Assembler, Chunk, check_chunk};

/// Input fields that always contain media, so that an item without its `type` is reported as a broken media
/// item.
const MEDIA_FIELDS: &[&str] = &[
    "image",
    "images",
    "audio",
    "audios",
    "video",
    "videos",
    "document",
    "documents",
    "media",
];

/// One fault of a subject.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) code: String,
    place: String,
    message: String,
}

#[derive(Debug)]
pub(super) enum Verdict {
    Found(Vec<Finding>),
    NotRun(String),
}

impl Finding {
    pub(super) fn new(code: Code, place: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: String::from(code.as_str()),
            place: place.into(),
            message: message.into(),
        }
    }

    fn within(at: &str, violation: &envelope::ShapeViolation) -> Self {
        let place = format!("{at}{}", violation.pointer);
        Self::new(violation.code, place, violation.message.as_str())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => write!(f, "{}: {}", self.code, self.message),
            place => write!(f, "{} at {place}: {}", self.code, self.message),
        }
    }
}

/// Evaluates every subject of a vector. `profile` is that of its folder; without it, it follows from the
/// subject.
pub(super) fn judge(vector: &Vector, profile: Option<Profile>) -> Verdict {
    if let Some(kind) = vector.foreign.first() {
        return Verdict::NotRun(format!("kind `{kind}` is not supported at this level yet"));
    }
    let module = match vector.module.as_ref().map(load_inline) {
        None => None,
        Some(Ok(module)) => Some(module),
        Some(Err(message)) => return Verdict::NotRun(format!("its module cannot be loaded: {message}")),
    };
    let mut findings = Vec::new();
    for (kind, subject) in &vector.subjects {
        match *kind {
            "envelope" if is_chunk(vector, subject) => findings.extend(judge_chunk(subject)),
            "envelope" => findings.extend(judge_envelope(vector, subject, profile, module.as_ref())),
            "events" if speaks_other_dialect(subject) => {
                return Verdict::NotRun(String::from(
                    "events of the dialect start, delta, end are not supported",
                ));
            }
            "events" => findings.extend(judge_events(subject)),
            "composition" => match composed::judge(subject) {
                Ok(found) => findings.extend(found),
                Err(message) => return Verdict::NotRun(message),
            },
            _ => findings.extend(judge_input(subject, module.as_ref())),
        }
    }
    Verdict::Found(findings)
}

/// An inline module: `manifest` as in module.yaml, `schema` as in schema.json. It is loaded like any other
/// module, so that defaults and definitions apply.
fn load_inline(value: &Value) -> Result<Module, String> {
    let part = |key: &str| {
        let part = value.get(key).filter(|part| part.is_object());
        part.map(ToString::to_string)
            .ok_or_else(|| format!("`module.{key}` is not an object"))
    };
    let files: FileMap = [
        ("module.yaml", part("manifest")?),
        ("schema.json", part("schema")?),
        ("prompt.md", String::from("This module is never run.")),
    ]
    .into_iter()
    .collect();
    load(&files)
        .module
        .ok_or_else(|| String::from("the manifest cannot be loaded"))
}

fn is_chunk(vector: &Vector, subject: &Value) -> bool {
    let looks = ["chunk", "progress", "final", "streaming"];
    match vector.category.as_deref() {
        Some("streaming") => true,
        Some(_) => false,
        None => vector.level == 4 && looks.iter().any(|key| subject.get(key).is_some()),
    }
}

fn judge_chunk(subject: &Value) -> Vec<Finding> {
    check_chunk(subject).iter().filter_map(of_stream).collect()
}

/// Warnings are not findings.
fn of_stream(violation: &stream::Violation) -> Option<Finding> {
    (violation.severity == Severity::Error)
        .then(|| Finding::new(violation.code, &*violation.pointer, violation.message.as_str()))
}

fn judge_envelope(
    vector: &Vector,
    subject: &Value,
    profile: Option<Profile>,
    module: Option<&Module>,
) -> Vec<Finding> {
    let own = match subject.get("version") {
        Some(_) => Profile::Cep22,
        None => Profile::Cognitive,
    };
    let profile = profile.unwrap_or(own);
    let mut findings = Vec::new();
    for violation in check_structure(subject, profile) {
        findings.push(Finding::within("", &violation));
        if profile == Profile::Cep22 && violation.keyword == "maxItems" {
            // The vectors of this profile report a full list as a type mismatch; both codes are accepted.
            findings.push(Finding::new(Code::E1003, violation.pointer, violation.message));
        }
    }
    if vector.category.as_deref() == Some("multimodal") {
        for key in ["data", "partial_data"] {
            if let Some(data) = subject.get(key) {
                outputs(data, &format!("/{key}"), "", &mut findings);
            }
        }
    }
    if let Some(module) = module.filter(|_| findings.is_empty()) {
        findings.extend(judge_reply(module, subject));
    }
    findings
}

/// Whether the answer satisfies the contract of its module. An error envelope does if its code is kept.
fn judge_reply(module: &Module, subject: &Value) -> Vec<Finding> {
    let Value::Object(object) = subject else {
        return Vec::new();
    };
    let given = subject.pointer("/error/code").and_then(Value::as_str);
    let checked = check_object(module, object.clone(), &CheckOptions::default());
    // A legacy code name is reported as its number.
    let same = |code: &str| {
        given.is_some_and(|given| {
            let number = Code::find(given);
            given == code || (number.is_some() && number == Code::find(code))
        })
    };
    checked
        .error()
        .filter(|error| !same(&error.code))
        .map(of_error)
        .into_iter()
        .collect()
}

pub(super) fn of_error(error: &ErrorBody) -> Finding {
    Finding {
        code: error.code.clone(),
        place: String::new(),
        message: error.message.clone(),
    }
}

fn judge_input(subject: &Value, module: Option<&Module>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(module) = module {
        // Annotations added by the transport are not part of the module's input.
        let checked = check_input(module, &without_annotations(subject));
        findings.extend(checked.err().map(|error| of_error(&error)));
    }
    if subject.is_object() {
        inputs(subject, "", &mut findings);
    } else {
        findings.push(Finding::new(Code::E1001, "", "the input is not an object"));
    }
    findings
}

fn without_annotations(subject: &Value) -> Value {
    let mut subject = subject.clone();
    if let Value::Object(map) = &mut subject {
        map.retain(|key, _| !key.starts_with('_'));
    }
    subject
}

/// Checks every media item of an input. Fields known by name always contain media; elsewhere only objects
/// with the form of media count.
fn inputs(value: &Value, at: &str, findings: &mut Vec<Finding>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter().filter(|(key, _)| !key.starts_with('_')) {
                let at = format!("{at}/{key}");
                match value {
                    Value::Array(items) if MEDIA_FIELDS.contains(&key.as_str()) => {
                        for (index, item) in items.iter().enumerate() {
                            input_item(item, &format!("{at}/{index}"), findings);
                        }
                    }
                    Value::Object(_) if MEDIA_FIELDS.contains(&key.as_str()) => {
                        input_item(value, &at, findings);
                    }
                    Value::Object(item) if looks_like_media(item) => input_item(value, &at, findings),
                    value => inputs(value, &at, findings),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let at = format!("{at}/{index}");
                match item {
                    Value::Object(map) if looks_like_media(map) => input_item(item, &at, findings),
                    item => inputs(item, &at, findings),
                }
            }
        }
        _ => {}
    }
}

fn input_item(item: &Value, at: &str, findings: &mut Vec<Finding>) {
    let violations = media::check_input(item);
    findings.extend(violations.iter().map(|violation| Finding::within(at, violation)));
}

/// Has a `media_type`, or the `type` of a variant with its payload field.
fn looks_like_media(map: &serde_json::Map<String, Value>) -> bool {
    let partner = match map.get("type").and_then(Value::as_str) {
        Some("url") => "url",
        Some("base64") => "data",
        Some("file") => "path",
        Some("upload_ref") => "upload_id",
        _ => "media_type",
    };
    map.contains_key("media_type") || map.contains_key(partner)
}

/// Checks every media item of an answer: objects with a `media_type`, and fields named `generated_*`.
fn outputs(value: &Value, at: &str, name: &str, findings: &mut Vec<Finding>) {
    match value {
        Value::Object(map) if map.contains_key("media_type") || name.starts_with("generated_") => {
            let violations = media::check_output(value);
            findings.extend(violations.iter().map(|violation| Finding::within(at, violation)));
        }
        Value::Object(map) => {
            for (key, value) in map {
                outputs(value, &format!("{at}/{key}"), key, findings);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                outputs(item, &format!("{at}/{index}"), name, findings);
            }
        }
        _ => {}
    }
}

/// Events with their kind under `type`, as written by another runtime.
fn speaks_other_dialect(subject: &Value) -> bool {
    let first = subject.as_array().and_then(|events| events.first());
    first.is_some_and(|event| event.get("type").is_some_and(Value::is_string))
}

fn judge_events(subject: &Value) -> Vec<Finding> {
    let Value::Array(events) = subject else {
        return vec![Finding::new(Code::E1003, "", "the events are not a list")];
    };
    let mut findings = Vec::new();
    let mut assembler = Assembler::new();
    for (index, event) in events.iter().enumerate() {
        let mut found = Vec::new();
        match Chunk::from_value(event.clone()) {
            Ok(chunk) => found.extend(assembler.push(chunk).err()),
            Err(violations) => found.extend(violations),
        }
        let within = found.iter().filter_map(of_stream).map(|finding| Finding {
            place: format!("/{index}{}", finding.place),
            ..finding
        });
        findings.extend(within);
    }
    let assembled = assembler.finish();
    // `finish` repeats the violations reported by `push`; those above include the event index.
    if findings.is_empty() {
        findings.extend(assembled.violations.iter().filter_map(of_stream));
    }
    if !assembled.ended {
        let message = "the stream has no terminal event (final or error)";
        findings.push(Finding::new(Code::E2010, "", message));
    }
    let envelope = check_structure(&assembled.envelope, Profile::Cognitive);
    findings.extend(envelope.iter().map(|violation| Finding::within("", violation)));
    findings
}

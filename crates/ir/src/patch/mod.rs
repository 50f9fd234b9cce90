//! Patches that a request applies to the body for one back-end, by JSON pointer. They can set fields that
//! the IR does not define. They cannot change structural fields, which the gateway controls: target model,
//! content, destination, billing, response form and number of answers.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::adaptation::{Degradation, Ledger};
use crate::error::{Error, ErrorKind, Phase};
use crate::limits::{PATCHES_BYTES_MAX, PATCHES_MAX};

/// Structural top-level fields of all dialects, as normalised by [`plain`].
const STRUCTURAL: &[&str] = &[
    // Target model.
    "model",
    "models",
    "provider",
    "route",
    "fallbacks",
    // Content.
    "messages",
    "input",
    "contents",
    "content",
    "requests",
    "system",
    "instructions",
    "systeminstruction",
    "prompt",
    "suffix",
    "template",
    "chattemplate",
    "continuefinalmessage",
    "addgenerationprompt",
    "context",
    "documents",
    "image",
    "images",
    "mask",
    "file",
    "files",
    "filename",
    "cachedcontent",
    "previousresponseid",
    "conversation",
    "tools",
    "toolchoice",
    "toolconfig",
    "functions",
    "functioncall",
    // Destination, and disclosure to third parties.
    "mcpservers",
    "container",
    "plugins",
    "websearchoptions",
    "store",
    // End user and billing.
    "user",
    "metadata",
    "safetyidentifier",
    "servicetier",
    // Response form and number of answers.
    "stream",
    "streamoptions",
    "streamformat",
    "background",
    "responseformat",
    "format",
    "encodingformat",
    "modalities",
    "n",
    "bestof",
];

/// Sections of settings with their structural fields. A missing section is created.
const SECTIONS: &[(&str, &[&str])] = &[
    (
        "generationconfig",
        &[
            "candidatecount",
            "responseschema",
            "responsejsonschema",
            "responsemimetype",
            "responsemodalities",
            "responseformat",
        ],
    ),
    ("outputconfig", &["format"]),
    ("text", &["format"]),
    ("options", &[]),
];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    #[serde(rename = "match", default)]
    pub target: Target,
    pub pointer: String,
    /// The new value; `null` is an ordinary value.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "even_null"
    )]
    pub value: Option<Value>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub delete: bool,
}

fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The back-ends to which a patch applies; an unset field matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Target {
    /// Whether a patch for `self` applies to the back-end described by `actual`.
    pub fn matches(&self, actual: &Self) -> bool {
        let fits = |wanted: &Option<String>, actual: &Option<String>| wanted.is_none() || wanted == actual;
        fits(&self.backend, &actual.backend)
            && fits(&self.kind, &actual.kind)
            && fits(&self.model, &actual.model)
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Checks that each patch has either `value` or `delete`, and the limits.
pub(crate) fn check(patches: &[Patch]) -> Result<(), Error> {
    if patches.is_empty() {
        return Ok(());
    }
    if patches.len() > PATCHES_MAX {
        let message = format!("`patches` has more than {PATCHES_MAX} members");
        return Err(Error::invalid_request(message));
    }
    for (at, patch) in patches.iter().enumerate() {
        let wrong = match (&patch.value, patch.delete) {
            (Some(_), true) => "has both `value` and `delete`",
            (None, false) => "has neither `value` nor `delete`",
            _ => continue,
        };
        return Err(Error::invalid_request(format!("`patches[{at}]` {wrong}")));
    }
    let written = serde_json::to_vec(patches).map_err(|why| Error::invalid_request(why.to_string()))?;
    if written.len() > PATCHES_BYTES_MAX {
        let message = format!("`patches` is larger than {PATCHES_BYTES_MAX} bytes");
        return Err(Error::invalid_request(message));
    }
    Ok(())
}

/// Applies the patches that match `actual`. A patch of a structural field is recorded as dropped, or is an
/// error if `degradation` is strict.
pub fn apply(
    body: &mut Value,
    patches: &[Patch],
    actual: &Target,
    degradation: Degradation,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    for (at, patch) in covering(patches, actual) {
        if let Err(reason) = apply_one(body, patch) {
            refuse(at, reason, degradation, ledger)?;
        }
    }
    Ok(())
}

/// The same for a back-end that receives no body: no patch applies.
pub fn apply_without_body(
    patches: &[Patch],
    actual: &Target,
    degradation: Degradation,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let reason = "the back-end receives no body to patch";
    covering(patches, actual).try_for_each(|(at, _)| refuse(at, reason, degradation, ledger))
}

/// The patches that match this back-end, with their index in the request.
fn covering<'a>(patches: &'a [Patch], actual: &'a Target) -> impl Iterator<Item = (usize, &'a Patch)> {
    let numbered = patches.iter().enumerate();
    numbered.filter(|(_, patch)| patch.target.matches(actual))
}

fn refuse(at: usize, reason: &str, degradation: Degradation, ledger: &mut Ledger) -> Result<(), Error> {
    let pointer = format!("/patches/{at}");
    if degradation == Degradation::Strict {
        let message = format!("{pointer}: {reason}");
        return Err(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message));
    }
    ledger.dropped(pointer, reason);
    Ok(())
}

fn apply_one(body: &mut Value, patch: &Patch) -> Result<(), &'static str> {
    let mut steps = patch.pointer.split('/').map(unescape);
    if steps.next().is_none_or(|before| !before.is_empty()) {
        return Err("the pointer does not begin with /");
    }
    let steps: Vec<String> = steps.collect();
    if is_structural(&steps) {
        return Err("a patch must not change a structural field of the request");
    }
    let (Some((key, parents)), Value::Object(map)) = (steps.split_last(), body) else {
        return Err(UNRESOLVED);
    };
    match &patch.value {
        Some(value) => descend(map, parents, true)?.insert(key.clone(), value.clone()),
        // Deleting from a missing object has no effect.
        None => descend(map, parents, false)
            .ok()
            .and_then(|map| map.shift_remove(key)),
    };
    Ok(())
}

const UNRESOLVED: &str = "the pointer does not resolve";

/// The object at `steps`. A missing section of settings is created if `create` is set.
fn descend<'a>(
    mut map: &'a mut Map<String, Value>,
    steps: &[String],
    create: bool,
) -> Result<&'a mut Map<String, Value>, &'static str> {
    if let Some(top) = steps.first().filter(|_| create)
        && section(&plain(top)).is_some()
        && !map.contains_key(top)
    {
        map.insert(top.clone(), Value::Object(Map::new()));
    }
    for step in steps {
        map = match map.get_mut(step) {
            Some(Value::Object(inner)) => inner,
            _ => return Err(UNRESOLVED),
        };
    }
    Ok(map)
}

fn is_structural(steps: &[String]) -> bool {
    let Some((top, below)) = steps.split_first() else {
        return true;
    };
    let top = plain(top);
    if top.is_empty() || STRUCTURAL.contains(&top.as_str()) {
        return true;
    }
    match (section(&top), below.first()) {
        // Replacing a section would replace its structural fields.
        (Some(inside), None) => !inside.is_empty(),
        (Some(inside), Some(step)) => inside.contains(&plain(step).as_str()),
        (None, _) => false,
    }
}

fn section(top: &str) -> Option<&'static [&'static str]> {
    let mut known = SECTIONS.iter();
    known.find(|(name, _)| *name == top).map(|(_, inside)| *inside)
}

/// Whether a back-end may read the model or its alternatives from this field.
pub(crate) fn names_model(name: &str) -> bool {
    matches!(plain(name).as_str(), "model" | "models" | "fallbacks")
}

/// A name as normalised by the most lenient server: some accept `system_instruction` for
/// `systemInstruction`, some ignore case (including letters that fold to ASCII), and in a form `image[]` is
/// `image`.
fn plain(name: &str) -> String {
    let name = name.split('[').next().unwrap_or_default();
    name.chars()
        .filter(|letter| !matches!(letter, '_' | '-'))
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests;

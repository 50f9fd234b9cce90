//! Changes that a request asks to be made to the body for one back-end, by JSON pointer. They reach
//! what this vocabulary has no word for; they never reach the structure, which stays ours: who is asked, what
//! is asked, where it goes, who pays, in which form and how often it is answered.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::adaptation::{Degradation, Ledger};
use crate::error::{Error, ErrorKind, Phase};
use crate::limits::{PATCHES_BYTES_MAX, PATCHES_MAX};

/// Top-level fields, over all dialects, that are structure; as [`plain`] spells them.
const STRUCTURAL: &[&str] = &[
    // Who is asked.
    "model",
    "models",
    "provider",
    "route",
    "fallbacks",
    // What is asked.
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
    // Where it goes, and who else gets to see it.
    "mcpservers",
    "container",
    "plugins",
    "websearchoptions",
    "store",
    // Who asks, and who pays.
    "user",
    "metadata",
    "safetyidentifier",
    "servicetier",
    // In which form it is answered, and how often.
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

/// Sections of settings in which some are structure. One that a body does not have yet is begun.
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
    /// What is to stand there; `null` is a value like any other.
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

/// Where a patch applies; what is not said matches everything.
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
    /// Whether a patch for `self` applies to the back-end that `actual` describes.
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

/// Whether patches say one thing each, and are not too many or too large.
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

/// Applies the patches that cover `actual`. One that reaches for the structure is booked as dropped, or is the
/// end of it where the request stands no loss.
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

/// The same for a back-end that is sent no body: there is nothing to change.
pub fn apply_without_body(
    patches: &[Patch],
    actual: &Target,
    degradation: Degradation,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let reason = "the back-end is sent no body that could be changed";
    covering(patches, actual).try_for_each(|(at, _)| refuse(at, reason, degradation, ledger))
}

/// The patches that are meant for this back-end, each with its place in the request.
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
        return Err("a patch may not change the structure of a request");
    }
    let (Some((key, parents)), Value::Object(map)) = (steps.split_last(), body) else {
        return Err(NOWHERE);
    };
    match &patch.value {
        Some(value) => descend(map, parents, true)?.insert(key.clone(), value.clone()),
        // What is in nothing is gone already.
        None => descend(map, parents, false)
            .ok()
            .and_then(|map| map.shift_remove(key)),
    };
    Ok(())
}

const NOWHERE: &str = "the pointer leads nowhere";

/// The object that the steps lead to. A section of settings may be begun where it is missing.
fn descend<'a>(
    mut map: &'a mut Map<String, Value>,
    steps: &[String],
    begins: bool,
) -> Result<&'a mut Map<String, Value>, &'static str> {
    if let Some(top) = steps.first().filter(|_| begins)
        && section(&plain(top)).is_some()
        && !map.contains_key(top)
    {
        map.insert(top.clone(), Value::Object(Map::new()));
    }
    for step in steps {
        map = match map.get_mut(step) {
            Some(Value::Object(inner)) => inner,
            _ => return Err(NOWHERE),
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
        // Whoever takes the place of a section takes that of what is in it.
        (Some(inside), None) => !inside.is_empty(),
        (Some(inside), Some(step)) => inside.contains(&plain(step).as_str()),
        (None, _) => false,
    }
}

fn section(top: &str) -> Option<&'static [&'static str]> {
    let mut known = SECTIONS.iter();
    known.find(|(name, _)| *name == top).map(|(_, inside)| *inside)
}

/// A name as the most forgiving server reads it: some take `system_instruction` for `systemInstruction`, some
/// ignore case, also that of letters which only look old, and in a form `image[]` is `image`.
/// Whether a back-end may read in this field which model is asked, or which ones behind it.
pub(crate) fn names_model(name: &str) -> bool {
    matches!(plain(name).as_str(), "model" | "models" | "fallbacks")
}

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

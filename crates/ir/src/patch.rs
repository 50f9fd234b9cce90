//! Changes that a request asks to be made to the body for one back-end, by JSON pointer. They reach
//! what this vocabulary has no word for; they never reach the structure, which stays ours.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::adaptation::Ledger;

/// Top-level fields, over all dialects, that carry what was asked, where it goes and who pays.
const STRUCTURAL: &[&str] = &[
    "model",
    "messages",
    "input",
    "contents",
    "system",
    "instructions",
    "systemInstruction",
    "system_instruction",
    "prompt",
    "tools",
    "tool_choice",
    "toolConfig",
    "stream",
    "stream_options",
    "response_format",
    "format",
    "user",
];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    #[serde(rename = "match", default)]
    pub target: Target,
    pub pointer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub delete: bool,
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
    pub fn covers(&self, actual: &Self) -> bool {
        let fits = |wanted: &Option<String>, actual: &Option<String>| wanted.is_none() || wanted == actual;
        fits(&self.backend, &actual.backend)
            && fits(&self.kind, &actual.kind)
            && fits(&self.model, &actual.model)
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Applies the patches that cover `actual`. One that reaches for the structure is refused and booked.
pub fn apply(body: &mut Value, patches: &[Patch], actual: &Target, ledger: &mut Ledger) {
    for (at, patch) in patches
        .iter()
        .enumerate()
        .filter(|(_, patch)| patch.target.covers(actual))
    {
        let refuse = |ledger: &mut Ledger, reason: &str| ledger.dropped(format!("/patches/{at}"), reason);
        let Some((parent, key)) = patch.pointer.rsplit_once('/') else {
            refuse(ledger, "the pointer does not begin with /");
            continue;
        };
        let top = patch.pointer.split('/').nth(1).unwrap_or_default();
        if top.is_empty() || STRUCTURAL.contains(&unescape(top).as_str()) {
            refuse(ledger, "a patch may not change the structure of a request");
            continue;
        }
        let key = unescape(key);
        match body.pointer_mut(parent) {
            Some(Value::Object(map)) if patch.delete => {
                map.shift_remove(&key);
            }
            Some(Value::Object(map)) => {
                map.insert(key, patch.value.clone().unwrap_or_default());
            }
            _ => refuse(ledger, "the pointer leads nowhere"),
        }
    }
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

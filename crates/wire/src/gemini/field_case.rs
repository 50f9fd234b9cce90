//! Field names in two spellings: Google's servers accept `inlineData` and `inline_data`, and its examples
//! use both. The decoder normalizes to camel case and notes the pointers that had snake case; the encoder
//! restores them.

use ir::{Ext, Map};
use serde_json::{Value, json};

use crate::gemini::OWN;

const NOTE: &str = "$snake";

/// Fields whose content belongs to the caller and is not normalized.
const OPAQUE: [&str; 8] = [
    "args",
    "response",
    "parameters",
    "parametersJsonSchema",
    "responseSchema",
    "responseJsonSchema",
    "labels",
    "customMetadata",
];

const NAMES: [(&str, &str); 42] = [
    ("allowed_function_names", "allowedFunctionNames"),
    ("cached_content", "cachedContent"),
    ("candidate_count", "candidateCount"),
    ("code_execution", "codeExecution"),
    ("code_execution_result", "codeExecutionResult"),
    ("display_name", "displayName"),
    ("executable_code", "executableCode"),
    ("file_data", "fileData"),
    ("file_uri", "fileUri"),
    ("frequency_penalty", "frequencyPenalty"),
    ("function_call", "functionCall"),
    ("function_calling_config", "functionCallingConfig"),
    ("function_declarations", "functionDeclarations"),
    ("function_response", "functionResponse"),
    ("generation_config", "generationConfig"),
    ("google_search", "googleSearch"),
    ("include_thoughts", "includeThoughts"),
    ("inline_data", "inlineData"),
    ("max_output_tokens", "maxOutputTokens"),
    ("media_resolution", "mediaResolution"),
    ("mime_type", "mimeType"),
    ("parameters_json_schema", "parametersJsonSchema"),
    ("presence_penalty", "presencePenalty"),
    ("response_json_schema", "responseJsonSchema"),
    ("response_logprobs", "responseLogprobs"),
    ("response_mime_type", "responseMimeType"),
    ("response_modalities", "responseModalities"),
    ("response_schema", "responseSchema"),
    ("safety_settings", "safetySettings"),
    ("speech_config", "speechConfig"),
    ("stop_sequences", "stopSequences"),
    ("system_instruction", "systemInstruction"),
    ("thinking_budget", "thinkingBudget"),
    ("thinking_config", "thinkingConfig"),
    ("thinking_level", "thinkingLevel"),
    ("thought_signature", "thoughtSignature"),
    ("tool_config", "toolConfig"),
    ("top_k", "topK"),
    ("top_p", "topP"),
    ("url_context", "urlContext"),
    ("video_metadata", "videoMetadata"),
    ("will_continue", "willContinue"),
];

/// Normalizes a document to camel case.
pub(super) fn read(body: &mut Value, ext: &mut Ext) {
    let mut renamed = Vec::new();
    walk(body, "", &mut renamed);
    if !renamed.is_empty() {
        ext.set(OWN, NOTE, json!(renamed));
    }
}

fn walk(value: &mut Value, pointer: &str, renamed: &mut Vec<String>) {
    match value {
        Value::Array(list) => {
            for (at, inner) in list.iter_mut().enumerate() {
                walk(inner, &format!("{pointer}/{at}"), renamed);
            }
        }
        Value::Object(map) => {
            for (snake, camel) in NAMES {
                if map.contains_key(snake) && !map.contains_key(camel) {
                    rename(map, snake, camel);
                    renamed.push(format!("{pointer}/{camel}"));
                }
            }
            for (key, inner) in map.iter_mut() {
                if !OPAQUE.contains(&key.as_str()) && (inner.is_object() || inner.is_array()) {
                    walk(
                        inner,
                        &format!("{pointer}/{}", ir::adaptation::escape(key)),
                        renamed,
                    );
                }
            }
        }
        _ => {}
    }
}

fn rename(map: &mut Map, from: &str, to: &str) {
    if let Some(value) = map.shift_remove(from) {
        map.insert(String::from(to), value);
    }
}

/// Restores the original spelling of a document. Inner fields are renamed first, so that the noted pointers
/// to them are still valid.
pub(super) fn write(body: &mut Value, ext: &Ext) {
    let noted = ext.value(OWN, NOTE).and_then(Value::as_array);
    for pointer in noted.into_iter().flatten().rev().filter_map(Value::as_str) {
        let Some((parent, camel)) = pointer.rsplit_once('/') else {
            continue;
        };
        let snake = NAMES.iter().find(|(_, name)| *name == camel);
        if let (Some(Value::Object(map)), Some((snake, _))) = (body.pointer_mut(parent), snake) {
            rename(map, camel, snake);
        }
    }
}

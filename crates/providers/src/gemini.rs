//! Gemini's generateContent. The base URL excludes `/v1beta/models`; the model and the stream flag are part
//! of the URL, so a model name is escaped and cannot change the path.

use ir::{ChatRequest, Dialect, Payload};

use crate::http::{Client, HttpOptions, HttpUpstream, ModelList, VendorSpec};

pub const BASE_URL: &str = "https://generativelanguage.googleapis.com";

pub fn gemini(client: Client, options: HttpOptions) -> HttpUpstream {
    let vendor = VendorSpec {
        kind: "gemini",
        dialect: Dialect::Gemini,
        path,
        whole,
        models: ModelList {
            path: "/v1beta/models",
            list: "models",
            name: "name",
        },
        // In a header, not in the URL, because URLs are logged.
        key_header: ("x-goog-api-key", ""),
        headers: &[],
    };
    HttpUpstream::new(vendor, client, options)
}

fn whole(payload: &Payload, model: &str) -> Option<(Dialect, String)> {
    match payload {
        Payload::Embeddings(_) => {
            let model = named(model);
            let path = format!("/v1beta/models/{model}:batchEmbedContents");
            Some((Dialect::Gemini, path))
        }
        _ => None,
    }
}

/// A model name escaped for a path.
fn named(model: &str) -> String {
    let model = model.strip_prefix("models/").unwrap_or(model);
    model.chars().map(escaped).collect()
}

fn path(chat: &ChatRequest) -> String {
    let model = named(chat.model.as_deref().unwrap_or_default());
    match chat.streams() {
        true => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        false => format!("/v1beta/models/{model}:generateContent"),
    }
}

/// A character of a model name escaped for a path. None can end the path or traverse it.
fn escaped(letter: char) -> String {
    match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => String::from(letter),
        other => {
            let mut bytes = [0; 4];
            let bytes = other.encode_utf8(&mut bytes).bytes();
            bytes.map(|byte| format!("%{byte:02X}")).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::path;
    use ir::ChatRequest;

    #[test]
    fn model_names_are_escaped_in_the_path() {
        for (name, expected) in [
            (
                "gemini-2.5-flash",
                "/v1beta/models/gemini-2.5-flash:generateContent",
            ),
            ("models/gemini-x", "/v1beta/models/gemini-x:generateContent"),
            (
                "../../files?x=#",
                "/v1beta/models/..%2F..%2Ffiles%3Fx%3D%23:generateContent",
            ),
        ] {
            assert_eq!(path(&ChatRequest::new(name, Vec::new())), expected);
        }
    }
}

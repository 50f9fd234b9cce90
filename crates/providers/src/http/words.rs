//! The server's own words, kept beside what they mean for a caller who asked for them and may see them: the JSON of a
//! whole answer, or the list of all data of a stream. More than a limit is left out, and said; a key of ours that
//! the server quotes is struck out.

use ir::event::{ADAPTED, Warning};
use ir::{Dialect, Event};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use wire::framing::Framing;

use crate::limits::RAW_BYTES_MAX;
use crate::redaction::redact_text;

#[derive(Debug)]
pub(super) struct Words {
    key: Option<SecretString>,
    /// `None` for a dialect that does not stream.
    framing: Option<Framing>,
    said: Vec<Value>,
    bytes: usize,
}

impl Words {
    pub(super) fn new(dialect: Dialect, key: Option<SecretString>) -> Self {
        Self {
            key,
            framing: Framing::of(dialect),
            said: Vec::new(),
            bytes: 0,
        }
    }

    /// Takes the bytes of a stream in; `None` is their end.
    pub(super) fn hear(&mut self, bytes: Option<&[u8]>) {
        let Some(framing) = &mut self.framing else {
            return;
        };
        let (said, held) = (&mut self.said, &mut self.bytes);
        let mut take = |frame: wire::framing::Frame<'_>| {
            *held += frame.data.len();
            // A mark of the end is no JSON, and what is too long is not told anyway.
            if *held <= RAW_BYTES_MAX
                && let Ok(value) = serde_json::from_str(frame.data)
            {
                said.push(value);
            }
        };
        match bytes {
            // An event that is too large ends the answer elsewhere.
            Some(bytes) => framing.push(bytes, &mut take).unwrap_or_default(),
            None => framing.finish(&mut take),
        }
    }

    /// A stream's data, in order.
    pub(super) fn of_stream(self) -> Event {
        let (data, bytes) = (Value::Array(self.said), self.bytes);
        told(data, bytes, self.key.as_ref())
    }

    /// A whole answer that was so many bytes long.
    pub(super) fn of_whole(self, answer: &Value, bytes: usize) -> Event {
        if bytes > RAW_BYTES_MAX {
            return told(Value::Null, bytes, None);
        }
        told(answer.clone(), bytes, self.key.as_ref())
    }
}

fn told(mut data: Value, bytes: usize, key: Option<&SecretString>) -> Event {
    if bytes > RAW_BYTES_MAX {
        let message = format!("/extra/raw: the back-end sent more than {RAW_BYTES_MAX} bytes");
        let warning = Warning::new(ADAPTED, message);
        return Event::Warning { warning };
    }
    hide(&mut data, key);
    Event::Raw { data }
}

/// A server may quote the API key, so the key is redacted.
pub(super) fn hide(value: &mut Value, key: Option<&SecretString>) {
    if let Some(key) = key.map(ExposeSecret::expose_secret).filter(|key| !key.is_empty()) {
        strike(value, key);
    }
}

fn strike(value: &mut Value, key: &str) {
    match value {
        Value::String(text) => redact_text(text, key, STRUCK),
        Value::Array(list) => list.iter_mut().for_each(|one| strike(one, key)),
        Value::Object(map) => {
            if map.keys().any(|name| name.contains(key)) {
                let fields = std::mem::take(map).into_iter();
                map.extend(fields.map(|(mut name, value)| {
                    redact_text(&mut name, key, STRUCK);
                    (name, value)
                }));
            }
            map.values_mut().for_each(|one| strike(one, key));
        }
        _ => {}
    }
}

const STRUCK: &str = "(key)";

#[cfg(test)]
mod tests {
    use ir::{Dialect, Event};
    use secrecy::SecretString;
    use serde_json::{Value, json};

    use super::Words;
    use crate::limits::RAW_BYTES_MAX;

    fn words(dialect: Dialect) -> Words {
        Words::new(dialect, Some(SecretString::from("sk-1")))
    }

    fn streamed(dialect: Dialect, pieces: &[&str]) -> Event {
        let mut words = words(dialect);
        for piece in pieces {
            words.hear(Some(piece.as_bytes()));
        }
        words.hear(None);
        words.of_stream()
    }

    #[test]
    fn a_stream_is_the_list_of_its_data() {
        let told = streamed(
            Dialect::OpenaiChat,
            &[
                "data: {\"a\"",
                ": 1}\n\n: hb\n\ndata: {\"b\": 2}\n\ndata: [DONE]\n\n",
            ],
        );
        let data = json!([{"a": 1}, {"b": 2}]);
        assert_eq!(told, Event::Raw { data });
        let told = streamed(Dialect::Ollama, &["{\"a\": 1}\n{\"b\"", ": 2}"]);
        let data = json!([{"a": 1}, {"b": 2}]);
        assert_eq!(told, Event::Raw { data });
    }

    #[test]
    fn no_key_is_told() {
        let answer = json!({"x sk-1": ["Bearer sk-1.", {"key": "sk-1"}], "n": 1});
        let told = words(Dialect::Gemini).of_whole(&answer, 10);
        let data = json!({"x (key)": ["Bearer (key).", {"key": "(key)"}], "n": 1});
        assert_eq!(told, Event::Raw { data });
    }

    #[test]
    fn too_much_is_left_out_and_said() {
        let line = format!("{{\"a\": \"{}\"}}\n", "x".repeat(1024 * 1024));
        let pieces = vec![line.as_str(); RAW_BYTES_MAX / line.len() + 1];
        let told = [
            streamed(Dialect::Ollama, &pieces),
            words(Dialect::Ollama).of_whole(&Value::Null, RAW_BYTES_MAX + 1),
        ];
        for told in told {
            let Event::Warning { warning } = told else {
                panic!("{told:?}");
            };
            assert!(warning.message.starts_with("/extra/raw: "), "{}", warning.message);
        }
        let told = words(Dialect::Ollama).of_whole(&Value::Null, RAW_BYTES_MAX);
        assert!(matches!(told, Event::Raw { .. }));
    }
}

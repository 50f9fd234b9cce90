//! Checks whether a JSON value is a chunk by the rules of the streaming envelope's schema; each violation has
//! a code and a pointer. A missing field is E1002, a wrong type E1003, a value out of its range or set E1004,
//! a field that is not allowed E1001. Keys that begin with `_` are transport annotations and are not checked.
//! Error codes are accepted in any spelling that an envelope allows.

use serde_json::{Map, Value};

use super::violation::Violation;
use crate::code::{self, Code};
use crate::envelope::Risk;
use crate::limits;

/// All reasons why `value` is not a chunk; empty if it is one.
pub fn check_chunk(value: &Value) -> Vec<Violation> {
    let mut checker = Checker::default();
    match value {
        Value::Object(map) => checker.chunk(map),
        _ => checker.add(Code::E1003, "", "a chunk must be a JSON object"),
    }
    checker.found
}

/// A non-negative integer; `3.0` is accepted, as in JSON Schema.
pub(super) fn integer(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let float = value.as_f64()?;
        let whole = float.fract() == 0.0 && (0.0..9e15).contains(&float);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, not negative and far below the limit of u64, as was just checked"
        )]
        let number = float as u64;
        whole.then_some(number)
    })
}

#[derive(Default)]
struct Checker {
    found: Vec<Violation>,
}

impl Checker {
    fn chunk(&mut self, map: &Map<String, Value>) {
        if let Some(chunk) = map.get("chunk") {
            self.only(map, "", &["chunk"]);
            self.numbered(chunk);
        } else if let Some(progress) = map.get("progress") {
            self.only(map, "", &["progress"]);
            self.progress(progress);
        } else if map.contains_key("final") {
            self.last(map);
        } else if map.contains_key("error") || map.get("ok") == Some(&Value::Bool(false)) {
            self.error(map);
        } else if ["ok", "streaming", "session_id", "meta"]
            .iter()
            .any(|key| map.contains_key(*key))
        {
            self.meta(map);
        } else {
            self.add(
                Code::E1002,
                "",
                "one of ok, chunk, progress, final and error is required",
            );
        }
    }

    fn meta(&mut self, map: &Map<String, Value>) {
        let known = [
            "ok",
            "streaming",
            "session_id",
            "resumed",
            "resume_from_seq",
            "meta",
        ];
        self.only(map, "", &known);
        self.required(map, "", &["ok", "streaming", "session_id", "meta"]);
        self.constant(map, "", "ok", true);
        self.constant(map, "", "streaming", true);
        self.string(map, "", "session_id");
        self.boolean(map, "", "resumed");
        self.integer(map, "", "resume_from_seq", 1, u64::MAX);
        if let Some(meta) = self.object(map, "", "meta") {
            self.required(meta, "/meta", &["risk", "explain"]);
            if !meta.get("confidence").is_some_and(Value::is_null) {
                self.confidence(meta);
            }
            self.risk_and_explain(meta);
        }
    }

    fn numbered(&mut self, chunk: &Value) {
        let Value::Object(chunk) = chunk else {
            return self.add(Code::E1003, "/chunk", "chunk must be an object");
        };
        let at = "/chunk";
        self.required(chunk, at, &["seq", "type"]);
        self.integer(chunk, at, "seq", 1, u64::MAX);
        self.string(chunk, at, "field");
        match chunk.get("type") {
            None => {}
            Some(Value::String(kind)) if kind == "delta" => {
                self.required(chunk, at, &["delta"]);
                self.only(chunk, at, &["seq", "type", "field", "delta", "checkpoint"]);
                self.string(chunk, at, "delta");
                self.checkpoint(chunk, at, "checkpoint");
            }
            Some(Value::String(kind)) if kind == "snapshot" => {
                self.required(chunk, at, &["data"]);
                self.only(chunk, at, &["seq", "type", "field", "data"]);
            }
            Some(_) => self.add(Code::E1004, "/chunk/type", "type must be delta or snapshot"),
        }
    }

    fn progress(&mut self, progress: &Value) {
        let Value::Object(progress) = progress else {
            return self.add(Code::E1003, "/progress", "progress must be an object");
        };
        let at = "/progress";
        self.required(progress, at, &["percent"]);
        self.only(progress, at, &["percent", "stage", "message"]);
        self.integer(progress, at, "percent", 0, 100);
        self.string(progress, at, "stage");
        self.string(progress, at, "message");
    }

    fn last(&mut self, map: &Map<String, Value>) {
        self.only(map, "", &["final", "meta", "data", "usage"]);
        self.required(map, "", &["meta", "data"]);
        self.constant(map, "", "final", true);
        self.object(map, "", "data");
        if let Some(meta) = self.object(map, "", "meta") {
            self.required(meta, "/meta", &["confidence", "risk", "explain"]);
            self.confidence(meta);
            self.risk_and_explain(meta);
            self.integer(meta, "/meta", "processing_time_ms", 0, u64::MAX);
            self.string(meta, "/meta", "model");
        }
        if let Some(usage) = self.object(map, "", "usage") {
            for key in ["input_tokens", "output_tokens", "total_tokens"] {
                // Unknown counts are null, which the published schema does not allow for.
                if !usage.get(key).is_some_and(Value::is_null) {
                    self.integer(usage, "/usage", key, 0, u64::MAX);
                }
            }
        }
    }

    fn error(&mut self, map: &Map<String, Value>) {
        self.only(
            map,
            "",
            &["ok", "streaming", "session_id", "error", "partial_data"],
        );
        self.required(map, "", &["ok", "error"]);
        self.constant(map, "", "ok", false);
        self.constant(map, "", "streaming", true);
        self.string(map, "", "session_id");
        self.object(map, "", "partial_data");
        let Some(error) = self.object(map, "", "error") else {
            return;
        };
        let at = "/error";
        self.required(error, at, &["code", "message"]);
        self.only(
            error,
            at,
            &["code", "message", "recoverable", "recovery", "details"],
        );
        self.string(error, at, "code");
        if let Some(Value::String(text)) = error.get("code")
            && Code::find(text).is_none()
            && !is_numbered(text)
        {
            self.add(
                Code::E1004,
                "/error/code",
                "code must be the letter E and four digits",
            );
        }
        self.string(error, at, "message");
        self.boolean(error, at, "recoverable");
        self.object(error, at, "details");
        if let Some(recovery) = self.object(error, at, "recovery") {
            let at = "/error/recovery";
            self.only(
                recovery,
                at,
                &["last_seq", "last_checkpoint", "retry_after_ms", "max_retries"],
            );
            self.integer(recovery, at, "last_seq", 1, u64::MAX);
            self.integer(recovery, at, "retry_after_ms", 0, u64::MAX);
            self.integer(recovery, at, "max_retries", 0, u64::MAX);
            self.checkpoint(recovery, at, "last_checkpoint");
        }
    }

    fn checkpoint(&mut self, map: &Map<String, Value>, at: &str, key: &str) {
        if let Some(checkpoint) = self.object(map, at, key) {
            let at = format!("{at}/{key}");
            self.only(checkpoint, &at, &["offset", "hash"]);
            self.integer(checkpoint, &at, "offset", 0, u64::MAX);
            self.string(checkpoint, &at, "hash");
            let six_hex = |hash: &str| {
                hash.len() == 6 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            };
            if checkpoint
                .get("hash")
                .and_then(Value::as_str)
                .is_some_and(|hash| !six_hex(hash))
            {
                self.add(
                    Code::E1004,
                    &format!("{at}/hash"),
                    "hash must be six lower-case hex digits",
                );
            }
        }
    }

    fn confidence(&mut self, meta: &Map<String, Value>) {
        let place = "/meta/confidence";
        match meta
            .get("confidence")
            .map(|value| (value.is_number(), value.as_f64()))
        {
            None => {}
            Some((false, _)) => self.add(Code::E1003, place, "confidence must be a number"),
            Some((true, number)) if number.is_some_and(|number| (0.0..=1.0).contains(&number)) => {}
            Some((true, _)) => self.add(Code::E1004, place, "confidence must be between 0 and 1"),
        }
    }

    fn risk_and_explain(&mut self, meta: &Map<String, Value>) {
        self.string(meta, "/meta", "risk");
        if meta
            .get("risk")
            .and_then(Value::as_str)
            .is_some_and(|risk| Risk::find(risk).is_none())
        {
            self.add(
                Code::E1004,
                "/meta/risk",
                "risk must be none, low, medium or high",
            );
        }
        self.string(meta, "/meta", "explain");
        let explain = meta.get("explain").and_then(Value::as_str).unwrap_or_default();
        if explain.chars().nth(limits::EXPLAIN_CHARS_MAX).is_some() {
            let message = format!(
                "explain must have at most {} characters",
                limits::EXPLAIN_CHARS_MAX
            );
            self.add(Code::E1004, "/meta/explain", &message);
        }
    }

    fn required(&mut self, map: &Map<String, Value>, at: &str, keys: &[&str]) {
        for key in keys {
            if !map.contains_key(*key) {
                self.add(Code::E1002, &format!("{at}/{key}"), &format!("{key} is missing"));
            }
        }
    }

    fn only(&mut self, map: &Map<String, Value>, at: &str, known: &[&str]) {
        for key in map.keys() {
            let annotation = at.is_empty() && key.starts_with('_');
            if !annotation && !known.contains(&key.as_str()) {
                let place = key.replace('~', "~0").replace('/', "~1");
                self.add(
                    Code::E1001,
                    &format!("{at}/{place}"),
                    "this field is not allowed here",
                );
            }
        }
    }

    fn constant(&mut self, map: &Map<String, Value>, at: &str, key: &str, wanted: bool) {
        if map.get(key).is_some_and(|value| *value != Value::Bool(wanted)) {
            self.add(
                Code::E1004,
                &format!("{at}/{key}"),
                &format!("{key} must be {wanted}"),
            );
        }
    }

    fn string(&mut self, map: &Map<String, Value>, at: &str, key: &str) {
        if map.get(key).is_some_and(|value| !value.is_string()) {
            self.add(
                Code::E1003,
                &format!("{at}/{key}"),
                &format!("{key} must be a string"),
            );
        }
    }

    fn boolean(&mut self, map: &Map<String, Value>, at: &str, key: &str) {
        if map.get(key).is_some_and(|value| !value.is_boolean()) {
            self.add(
                Code::E1003,
                &format!("{at}/{key}"),
                &format!("{key} must be a boolean"),
            );
        }
    }

    fn integer(&mut self, map: &Map<String, Value>, at: &str, key: &str, min: u64, max: u64) {
        let Some(value) = map.get(key) else { return };
        let place = format!("{at}/{key}");
        match integer(value) {
            Some(number) if (min..=max).contains(&number) => {}
            None if !value.is_number() => {
                self.add(Code::E1003, &place, &format!("{key} must be an integer"));
            }
            _ if max == u64::MAX => {
                self.add(
                    Code::E1004,
                    &place,
                    &format!("{key} must be an integer of at least {min}"),
                );
            }
            _ => {
                let message = format!("{key} must be an integer from {min} to {max}");
                self.add(Code::E1004, &place, &message);
            }
        }
    }

    fn object<'a>(
        &mut self,
        map: &'a Map<String, Value>,
        at: &str,
        key: &str,
    ) -> Option<&'a Map<String, Value>> {
        let value = map.get(key)?;
        if !value.is_object() {
            self.add(
                Code::E1003,
                &format!("{at}/{key}"),
                &format!("{key} must be an object"),
            );
        }
        value.as_object()
    }

    fn add(&mut self, code: Code, pointer: &str, message: &str) {
        self.found.push(Violation::error(code, pointer, message));
    }
}

fn is_numbered(text: &str) -> bool {
    let numbered = matches!(text.as_bytes(), [b'E', b'1'..=b'4', rest @ ..]
        if rest.len() == 3 && rest.iter().all(u8::is_ascii_digit));
    numbered || code::is_module_specific(text)
}

//! Media items in inputs and answers, checked by their shape alone: the variant, and the presence and form of
//! its fields. No bytes are decoded and nothing is fetched; the bytes themselves are checked later,
//! elsewhere.

use serde_json::{Map, Value};

use crate::code::Code;
use crate::envelope::ShapeViolation;

/// Families of accepted media; `application/` is for documents.
const INPUT_FAMILIES: &[&str] = &["image", "audio", "video", "application"];
const OUTPUT_FAMILIES: &[&str] = &["image", "audio", "video"];

/// All reasons why `value` is not a media input; pointers are relative to it.
pub fn check_input(value: &Value) -> Vec<ShapeViolation> {
    let mut check = MediaCheck::default();
    let Some(map) = check.item(value) else {
        return check.found;
    };
    let media_type = |check: &mut MediaCheck| check.media_type(map, INPUT_FAMILIES);
    match map.get("type").and_then(Value::as_str) {
        Some("url") => {
            check.only(map, &["type", "url", "media_type", "checksum"]);
            check.url(map);
            media_type(&mut check);
        }
        Some("base64") => {
            check.only(map, &["type", "media_type", "data", "checksum"]);
            check.required(map, "media_type");
            media_type(&mut check);
            check.data(map);
        }
        Some("file") => {
            check.only(map, &["type", "path", "media_type", "checksum"]);
            check.path(map);
            media_type(&mut check);
        }
        Some("upload_ref") => {
            check.only(map, &["type", "upload_id", "media_type"]);
            check.upload_id(map);
            media_type(&mut check);
        }
        _ => check.kind(map, "url, base64, file or upload_ref"),
    }
    check.checksum(map);
    check.found
}

/// All reasons why `value` is not a media output; pointers are relative to it.
pub fn check_output(value: &Value) -> Vec<ShapeViolation> {
    let mut check = MediaCheck::default();
    let Some(map) = check.item(value) else {
        return check.found;
    };
    check.only(
        map,
        &[
            "type",
            "media_type",
            "url",
            "data",
            "path",
            "expires_at",
            "width",
            "height",
            "duration_ms",
            "generation_params",
        ],
    );
    check.required(map, "media_type");
    check.media_type(map, OUTPUT_FAMILIES);
    let used = match map.get("type").and_then(Value::as_str) {
        Some("url") => {
            check.url(map);
            "url"
        }
        Some("base64") => {
            check.data(map);
            "data"
        }
        Some("file") => {
            check.path(map);
            "path"
        }
        _ => {
            check.kind(map, "url, base64 or file");
            ""
        }
    };
    for key in ["url", "data", "path"].into_iter().filter(|key| *key != used) {
        check.text(map, key);
    }
    check.integer(map, "width", 1);
    check.integer(map, "height", 1);
    check.integer(map, "duration_ms", 0);
    check.text(map, "expires_at");
    if let Some(time) = map.get("expires_at").and_then(Value::as_str)
        && !is_date_time(time)
    {
        check.add(
            Code::E1004,
            "/expires_at",
            "format",
            "expires_at must be a time such as 2026-02-04T12:00:00Z",
        );
    }
    match map.get("generation_params") {
        None | Some(Value::Object(_)) => {}
        Some(_) => check.wrong_type("/generation_params", "generation_params must be an object"),
    }
    check.found
}

/// Whether `text` is strict base64: the standard alphabet, padded, canonical, not empty.
pub fn is_strict_base64(text: &str) -> bool {
    let (quads, rest) = text.as_bytes().as_chunks::<4>();
    let Some((last, quads)) = quads.split_last() else {
        return false;
    };
    let whole = |quad: &[u8; 4]| quad.iter().all(|&byte| digit(byte).is_some());
    let end = match *last {
        // Bits removed by the padding must be zero, otherwise two texts would encode the same bytes.
        [a, b, b'=', b'='] => digit(a).is_some() && digit(b).is_some_and(|bits| bits & 0b1111 == 0),
        [a, b, c, b'='] => {
            digit(a).is_some() && digit(b).is_some() && digit(c).is_some_and(|bits| bits & 0b11 == 0)
        }
        ref quad => whole(quad),
    };
    end && rest.is_empty() && quads.iter().all(whole)
}

fn digit(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

/// A scheme, a colon, and text without spaces or delimiters.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let mut scheme = scheme.bytes();
    scheme.next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && scheme.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        && !rest.is_empty()
        && !rest
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || "<>\"{}|\\^`".contains(c))
}

/// The form of RFC 3339; whether the date exists is not checked.
fn is_date_time(text: &str) -> bool {
    let form = |text: &str, form: &str| {
        text.len() == form.len()
            && text.bytes().zip(form.bytes()).all(|(byte, wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                wanted => byte.eq_ignore_ascii_case(&wanted),
            })
    };
    let Some((time, rest)) = text.split_at_checked(19) else {
        return false;
    };
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if zone.len() == fraction.len() {
                return false;
            }
            zone
        }
        None => rest,
    };
    let offset = form(zone, "+00:00") || form(zone, "-00:00");
    form(time, "0000-00-00T00:00:00") && (form(zone, "Z") || offset)
}

/// A media type such as `image/png`: a known family, and a subtype in lower case.
fn is_media_type(text: &str, families: &[&str]) -> bool {
    let Some((family, subtype)) = text.split_once('/') else {
        return false;
    };
    families.contains(&family)
        && !subtype.is_empty()
        && subtype
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'+' | b'-'))
}

#[derive(Default)]
struct MediaCheck {
    found: Vec<ShapeViolation>,
}

impl MediaCheck {
    fn item<'a>(&mut self, value: &'a Value) -> Option<&'a Map<String, Value>> {
        if !value.is_object() {
            self.wrong_type("", "a media item must be an object");
        }
        value.as_object()
    }

    /// Reports a missing or unknown `type`.
    fn kind(&mut self, map: &Map<String, Value>, variants: &str) {
        match map.get("type") {
            None => self.missing("type"),
            Some(Value::String(_)) => {
                self.add(Code::E1004, "/type", "enum", &format!("type must be {variants}"));
            }
            Some(_) => self.wrong_type("/type", "type must be a string"),
        }
    }

    fn url(&mut self, map: &Map<String, Value>) {
        self.required(map, "url");
        self.text(map, "url");
        if map
            .get("url")
            .and_then(Value::as_str)
            .is_some_and(|url| !is_uri(url))
        {
            self.add(Code::E1004, "/url", "format", "url is not an absolute URL");
        }
    }

    fn data(&mut self, map: &Map<String, Value>) {
        self.required(map, "data");
        self.text(map, "data");
        if map
            .get("data")
            .and_then(Value::as_str)
            .is_some_and(|data| !is_strict_base64(data))
        {
            self.add(Code::E1013, "/data", "pattern", "data is not strict base64");
        }
    }

    fn path(&mut self, map: &Map<String, Value>) {
        self.required(map, "path");
        self.text(map, "path");
        if map.get("path").and_then(Value::as_str) == Some("") {
            self.add(Code::E1004, "/path", "minLength", "path is empty");
        }
    }

    fn upload_id(&mut self, map: &Map<String, Value>) {
        self.required(map, "upload_id");
        self.text(map, "upload_id");
        let well_formed = |id: &str| {
            id.strip_prefix("upl_")
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        };
        if map
            .get("upload_id")
            .and_then(Value::as_str)
            .is_some_and(|id| !well_formed(id))
        {
            let message = "upload_id must be `upl_` followed by letters and digits";
            self.add(Code::E1004, "/upload_id", "pattern", message);
        }
    }

    fn media_type(&mut self, map: &Map<String, Value>, families: &[&str]) {
        self.text(map, "media_type");
        let given = map.get("media_type").and_then(Value::as_str);
        if let Some(given) = given.filter(|given| !is_media_type(given, families)) {
            let message = format!("`{given}` is not one of {}/...", families.join("/..., "));
            self.add(Code::E1010, "/media_type", "pattern", &message);
        }
    }

    fn checksum(&mut self, map: &Map<String, Value>) {
        let checksum = match map.get("checksum") {
            None => return,
            Some(Value::Object(checksum)) => checksum,
            Some(_) => return self.wrong_type("/checksum", "checksum must be an object"),
        };
        for key in checksum
            .keys()
            .filter(|key| !matches!(key.as_str(), "algorithm" | "value"))
        {
            self.unknown("/checksum", key);
        }
        for key in ["algorithm", "value"] {
            match checksum.get(key) {
                None => {
                    let message = format!("{key} is missing");
                    self.add(Code::E1002, "/checksum", "required", &message);
                }
                Some(Value::String(_)) => {}
                Some(_) => self.wrong_type(&format!("/checksum/{key}"), &format!("{key} must be a string")),
            }
        }
        let text = |key| checksum.get(key).and_then(Value::as_str);
        let digits = match text("algorithm") {
            None => return,
            Some("sha256") => 64,
            Some("md5") => 32,
            Some("crc32") => 8,
            Some(_) => {
                let message = "algorithm must be sha256, md5 or crc32";
                return self.add(Code::E1004, "/checksum/algorithm", "enum", message);
            }
        };
        let is_hex =
            |value: &str| value.len() == digits && value.bytes().all(|byte| byte.is_ascii_hexdigit());
        if text("value").is_some_and(|value| !is_hex(value)) {
            let message = format!("value is not {digits} hex digits");
            self.add(Code::E1004, "/checksum/value", "pattern", &message);
        }
    }

    fn required(&mut self, map: &Map<String, Value>, key: &str) {
        if !map.contains_key(key) {
            self.missing(key);
        }
    }

    fn text(&mut self, map: &Map<String, Value>, key: &str) {
        if map.get(key).is_some_and(|value| !value.is_string()) {
            self.wrong_type(&format!("/{key}"), &format!("{key} must be a string"));
        }
    }

    fn integer(&mut self, map: &Map<String, Value>, key: &str, min: u64) {
        let Some(value) = map.get(key) else { return };
        let number = value.as_f64().filter(|number| number.fract() == 0.0);
        match number {
            None => self.wrong_type(&format!("/{key}"), &format!("{key} must be an integer")),
            Some(number) if number < min as f64 => {
                let message = format!("{key} must be at least {min}");
                self.add(Code::E1004, &format!("/{key}"), "minimum", &message);
            }
            Some(_) => {}
        }
    }

    /// Names that begin with `x-` are for extensions; all other names are defined by the specification.
    fn only(&mut self, map: &Map<String, Value>, known: &[&str]) {
        let is_unknown = |key: &&String| !known.contains(&key.as_str()) && !key.starts_with("x-");
        for key in map.keys().filter(is_unknown) {
            self.unknown("", key);
        }
    }

    fn unknown(&mut self, at: &str, key: &str) {
        let place = key.replace('~', "~0").replace('/', "~1");
        let message = format!("`{key}` is not allowed here");
        self.add(
            Code::E1001,
            &format!("{at}/{place}"),
            "additionalProperties",
            &message,
        );
    }

    fn missing(&mut self, key: &str) {
        self.add(Code::E1002, "", "required", &format!("`{key}` is missing"));
    }

    fn wrong_type(&mut self, pointer: &str, message: &str) {
        self.add(Code::E1003, pointer, "type", message);
    }

    fn add(&mut self, code: Code, pointer: &str, keyword: &'static str, message: &str) {
        self.found.push(ShapeViolation {
            pointer: String::from(pointer),
            keyword: keyword.into(),
            message: String::from(message),
            code,
        });
    }
}

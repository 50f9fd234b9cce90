//! Reads files as text and as values; every failure becomes a diagnostic with its location.

use serde_json::{Map, Value};

use super::LoadContext;
use crate::diagnostic::{Diagnostic, Location, Rule, Source};
use crate::document::{EntryPart, JsonErrorKind, YamlErrorKind, json_place, parse_json, parse_yaml};
use crate::file_map::{Entry, Refusal};

impl<'a> LoadContext<'a> {
    /// The text of a file without its byte order mark; on failure `None`, with the reason reported. A missing
    /// file is not reported here.
    pub(crate) fn text(&mut self, file: &str) -> Option<&'a str> {
        let bytes = match self.files.get(file)? {
            Entry::Read(bytes) => bytes,
            Entry::Listed { .. } => {
                let message = format!("`{file}` is not a text file of a module");
                self.push(Diagnostic::new(Rule::UNREADABLE_FILE, message).at(Location::file(file)));
                return None;
            }
            Entry::Refused(refusal) => {
                self.push(refused(file, refusal));
                return None;
            }
        };
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                self.push(not_utf8(file, bytes, error.valid_up_to()));
                return None;
            }
        };
        let (text, marked) = match text.strip_prefix('\u{feff}') {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let source = Source { file, text };
        if marked {
            let diagnostic = Diagnostic::new(
                Rule::BYTE_ORDER_MARK,
                format!("`{file}` begins with a byte order mark"),
            );
            self.push(
                diagnostic
                    .at(source.locate(0..0))
                    .hint("save the file as UTF-8 without BOM"),
            );
        }
        if let Some(at) = memchr::memchr(0, text.as_bytes()) {
            let diagnostic = Diagnostic::new(Rule::NUL_BYTE, format!("`{file}` contains a NUL byte"));
            self.push(
                diagnostic
                    .at(source.locate(at..at + 1))
                    .hint("is this a binary or UTF-16 file? save it as UTF-8"),
            );
            return None;
        }
        Some(text)
    }

    /// A JSON file as a value; syntax errors and duplicate keys are reported.
    pub(crate) fn json(&mut self, file: &str) -> Option<Value> {
        let text = self.text(file)?;
        let source = Source { file, text };
        if text.trim().is_empty() {
            let diagnostic = Diagnostic::new(Rule::JSON_SYNTAX, format!("`{file}` is empty"));
            self.push(diagnostic.at(Location::file(file)));
            return None;
        }
        match parse_json(text) {
            Ok(json) => {
                for duplicate in json.duplicates {
                    let place = json_place(text, &duplicate.pointer, EntryPart::Key);
                    let message = format!("the key `{}` occurs twice in one object", duplicate.key);
                    let diagnostic = Diagnostic::new(Rule::JSON_DUPLICATE_KEY, message);
                    self.push(
                        diagnostic
                            .at(source.locate(place.range))
                            .hint("parsers keep only one of the two: remove the other"),
                    );
                }
                Some(json.value)
            }
            Err(error) => {
                let rule = match error.kind {
                    JsonErrorKind::TooDeep => Rule::JSON_TOO_DEEP,
                    JsonErrorKind::Syntax | JsonErrorKind::Truncated => Rule::JSON_SYNTAX,
                };
                let hint = match error.kind {
                    JsonErrorKind::TooDeep => "flatten the document, or use `$defs`",
                    JsonErrorKind::Truncated => "the file ends too early: is a bracket left open?",
                    JsonErrorKind::Syntax => json_hint(&error.message),
                };
                // serde_json counts columns in bytes.
                let location = source.locate_byte_column(error.line, error.column);
                self.push(Diagnostic::new(rule, error.message).at(location).hint(hint));
                None
            }
        }
    }

    /// Parses YAML as a mapping. `text` is the whole file, `yaml` the part to parse; line numbers are those
    /// of the file.
    pub(crate) fn mapping(&mut self, file: &str, text: &str, yaml: &str) -> Option<Map<String, Value>> {
        let source = Source { file, text };
        let offset = yaml.as_ptr() as usize - text.as_ptr() as usize;
        let lines_before = text
            .as_bytes()
            .get(..offset)
            .map_or(0, |before| memchr::memchr_iter(b'\n', before).count());
        match parse_yaml(yaml) {
            Ok(Value::Object(map)) => Some(map),
            Ok(Value::Null) => {
                let diagnostic = Diagnostic::new(Rule::NOT_A_MAPPING, format!("`{file}` is empty"));
                self.push(diagnostic.at(source.locate(offset..offset)));
                None
            }
            Ok(_) => {
                let message = format!("`{file}` must be a mapping of keys to values");
                let diagnostic = Diagnostic::new(Rule::NOT_A_MAPPING, message);
                self.push(diagnostic.at(source.locate(offset..offset)));
                None
            }
            Err(error) => {
                let rule = match error.kind {
                    YamlErrorKind::Syntax => Rule::YAML_SYNTAX,
                    YamlErrorKind::DuplicateKey => Rule::DUPLICATE_KEY,
                    YamlErrorKind::Limit => Rule::YAML_LIMIT,
                };
                let location = match error.line {
                    Some(line) => source.locate_line(line + lines_before, error.column.unwrap_or(1)),
                    None => source.locate(offset..offset),
                };
                let mut diagnostic = Diagnostic::new(rule, error.message).at(location);
                if let Some(hint) = yaml_hint(error.kind, &diagnostic) {
                    diagnostic = diagnostic.hint(hint);
                }
                self.push(diagnostic);
                None
            }
        }
    }
}

fn refused(file: &str, refusal: &Refusal) -> Diagnostic {
    let (rule, message, hint) = match refusal {
        Refusal::TooLarge {
            size_bytes,
            limit_bytes,
        } => (
            Rule::FILE_TOO_LARGE,
            format!("`{file}` has {size_bytes} bytes; the limit is {limit_bytes}"),
            "large material belongs under assets/",
        ),
        Refusal::Escapes => (
            Rule::PATH_ESCAPES,
            format!("`{file}` is a link that points outside the module's folder"),
            "copy the file into the module",
        ),
        Refusal::LinkLoop => (
            Rule::LINK_LOOP,
            format!("`{file}` is a link to itself or to a folder"),
            "replace the link by its intended target",
        ),
        Refusal::NotAFile => (
            Rule::UNREADABLE_FILE,
            format!("`{file}` is not a regular file"),
            "replace it by a text file",
        ),
        Refusal::Unreadable(reason) => (
            Rule::UNREADABLE_FILE,
            format!("`{file}` cannot be read: {reason}"),
            "check its permissions",
        ),
        Refusal::TooMany => (
            Rule::TOO_MANY_FILES,
            format!("the folder contains too many files or nested folders; `{file}` was not checked"),
            "a module is a small folder: is this the right one?",
        ),
    };
    Diagnostic::new(rule, message).at(Location::file(file)).hint(hint)
}

/// Reports refused entries that the format does not require.
pub(crate) fn refusals(reading: &LoadContext<'_>) -> Vec<Diagnostic> {
    let named: Vec<_> = reading
        .report
        .iter()
        .filter_map(|diagnostic| diagnostic.location.as_ref().map(|at| at.file.clone()))
        .collect();
    reading
        .files
        .iter()
        .filter_map(|(file, entry)| match entry {
            Entry::Refused(refusal) if !named.iter().any(|name| name == file) => Some(refused(file, refusal)),
            _ => None,
        })
        .collect()
}

fn not_utf8(file: &str, bytes: &[u8], valid: usize) -> Diagnostic {
    let readable = bytes
        .get(..valid)
        .and_then(|good| std::str::from_utf8(good).ok())
        .unwrap_or_default();
    let source = Source { file, text: readable };
    let utf16 = matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
    let hint = if utf16 {
        "the file is UTF-16: save it as UTF-8"
    } else {
        "save the file as UTF-8"
    };
    Diagnostic::new(Rule::NOT_UTF8, format!("`{file}` is not UTF-8 (byte {valid})"))
        .at(source.locate(valid..valid))
        .hint(hint)
}

fn json_hint(message: &str) -> &'static str {
    if message.contains("trailing comma") {
        "remove the comma before the closing bracket"
    } else if message.contains("key must be a string") {
        "JSON keys must be in double quotes, and comments are not allowed"
    } else if message.contains("trailing characters") {
        "a file contains one JSON value; remove the text after it"
    } else if message.contains("control character") {
        "write line breaks inside strings as \\n"
    } else {
        "check the quotes, commas and brackets near this position"
    }
}

fn yaml_hint(kind: YamlErrorKind, diagnostic: &Diagnostic) -> Option<&'static str> {
    match kind {
        YamlErrorKind::DuplicateKey => Some("remove one of the two"),
        YamlErrorKind::Limit => {
            Some("a manifest is small and flat: write values out instead of nesting them")
        }
        YamlErrorKind::Syntax => {
            let snippet = diagnostic.location.as_ref().map(|at| at.snippet.as_str())?;
            if snippet.contains('\t') {
                Some("YAML is indented with spaces, never with tabs")
            } else if snippet.matches(": ").count() > 1 {
                Some("a value that contains `: ` must be quoted")
            } else {
                None
            }
        }
    }
}

//! Detects text of an answer that is copied from the prompt: a sentence or a placeholder of the instructions,
//! or a description in the schema. Text that the input contains too is not a copy. It does not compare
//! meanings: only equal text counts, apart from white space and the punctuation at the end.

use std::collections::{BTreeMap, BTreeSet};

use ir::{Request, Role};
use serde_json::{Map, Value};

use super::structure::ShapeViolation;
use crate::compose::{Segment, segments};
use crate::limits;
use crate::lower::{SCHEMA_LEAD, system_message};
use crate::module::Module;
use crate::prompt::{Placeholder, Token, tokens};
use crate::schema::{Section, Visit, walk};

/// The keyword of these violations, and the reason in the details of the error.
pub(super) const ECHO: &str = "echo";

/// Marks the position of the input in an instruction text; it is in no text that is compared.
const GAP: char = '\u{0}';

/// The texts of a module that an answer must not repeat.
#[derive(Debug, Default)]
pub(crate) struct InstructionTexts {
    /// Normalised text to its origin.
    texts: BTreeMap<String, Origin>,
    /// Values that the schema lists; the answer has to repeat them.
    listed: BTreeSet<String>,
    /// The normalised prompt without the input.
    prompt: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Instruction,
    Description,
}

impl InstructionTexts {
    pub(crate) fn of(module: &Module) -> Self {
        let mut found = Self::default();
        let prompt = without_input(module);
        let system = system_message(module);
        found.add_instructions(system.split(SCHEMA_LEAD).next().unwrap_or_default());
        found.add_instructions(&prompt);
        found.add_schema(module);
        found.prompt = normalise(&prompt);
        found
    }

    fn add(&mut self, text: &str, origin: Origin) {
        let text = normalise(text);
        let key = key(&text);
        if key.chars().count() >= limits::COPIED_CHARS_MIN && !key.contains(GAP) {
            self.texts.entry(String::from(key)).or_insert(origin);
        }
    }

    /// Adds paragraphs, list items, their sentences, quoted texts and the texts after a label.
    fn add_instructions(&mut self, text: &str) {
        for block in blocks(text) {
            self.add(&block, Origin::Instruction);
            if let Some((_, explained)) = block.split_once(": ") {
                self.add(explained, Origin::Instruction);
            }
            for sentence in sentences(&block) {
                self.add(sentence, Origin::Instruction);
                for clause in sentence.split(';') {
                    self.add(clause, Origin::Instruction);
                }
            }
            for quoted in quoted(&block) {
                self.add(quoted, Origin::Instruction);
            }
        }
    }

    fn add_schema(&mut self, module: &Module) {
        let contract = &module.contract;
        let document = contract.document();
        let own = contract.schema(Section::Data).into_iter();
        let shared = ["$defs", "definitions"]
            .into_iter()
            .filter_map(|key| document.get(key)?.as_object());
        for schema in own.chain(shared.flat_map(Map::values)) {
            walk(schema, "", &mut |_, map| {
                let listed = map.get("enum").and_then(Value::as_array).into_iter().flatten();
                for value in listed.chain(map.get("const")).filter_map(Value::as_str) {
                    self.listed.insert(String::from(key(&normalise(value))));
                }
                if let Some(text) = map.get("description").and_then(Value::as_str) {
                    self.add(text, Origin::Description);
                    for sentence in sentences(text) {
                        self.add(sentence, Origin::Description);
                    }
                }
                Visit::Descend
            });
        }
    }

    /// The violations of an answer, with pointers into the envelope.
    pub(super) fn violations(&self, data: &Map<String, Value>, request: &Request) -> Vec<ShapeViolation> {
        let mut copies = Vec::new();
        for (name, value) in data {
            self.look(value, &crate::document::join("/data", name), &mut copies);
        }
        if copies.is_empty() {
            return Vec::new();
        }
        let sent = normalise(&user_text(request));
        copies.retain(|copy| {
            // In the request more often than in the instructions: the input has it too.
            sent.matches(&copy.text).count() <= self.prompt.matches(&copy.text).count()
        });
        copies.into_iter().map(CopiedText::violation).collect()
    }

    fn look(&self, value: &Value, pointer: &str, copies: &mut Vec<CopiedText>) {
        match value {
            Value::String(text) if text.len() >= limits::COPIED_CHARS_MIN => {
                let text = normalise(text);
                let text = key(&text);
                if let Some(origin) = self.texts.get(text).filter(|_| !self.listed.contains(text)) {
                    copies.push(CopiedText {
                        pointer: String::from(pointer),
                        text: String::from(text),
                        origin: *origin,
                    });
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.look(item, &crate::document::join(pointer, &index.to_string()), copies);
                }
            }
            Value::Object(map) => {
                for (name, value) in map {
                    self.look(value, &crate::document::join(pointer, name), copies);
                }
            }
            _ => {}
        }
    }
}

/// A copied text of an answer.
struct CopiedText {
    pointer: String,
    text: String,
    origin: Origin,
}

impl CopiedText {
    fn violation(self) -> ShapeViolation {
        let message = match self.origin {
            Origin::Instruction => "repeats a text of the instructions instead of answering about the input",
            Origin::Description => "repeats a description of the schema instead of answering about the input",
        };
        ShapeViolation::new(self.pointer, ECHO, message)
    }
}

/// The prompt with a gap in place of everything that depends on the input.
fn without_input(module: &Module) -> String {
    let mut text = String::new();
    for segment in segments(&module.prompt) {
        let Segment::Text(template) = segment else {
            text.push(GAP);
            continue;
        };
        for token in tokens(template) {
            match token {
                Token::Text(literal) => text.push_str(literal),
                Token::Placeholder(Placeholder::Schema) => text.push_str(&module.schema_text()),
                Token::Placeholder(_) => text.push(GAP),
            }
        }
    }
    text
}

/// The text of the rendered prompt: the first message of the user. Later ones repeat answers.
fn user_text(request: &Request) -> String {
    let messages = request
        .as_chat()
        .map(|chat| chat.messages.as_slice())
        .unwrap_or_default();
    let first = messages.iter().find(|message| message.role == Role::User);
    first.map(ir::Message::joined_text).unwrap_or_default()
}

/// White space collapsed, and escapes of JSON strings resolved: an input may be rendered as JSON.
fn normalise(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let resolved = match letter {
            '\\' => match letters.next_if(|next| matches!(next, 'n' | 'r' | 't' | '"' | '\\')) {
                Some('"') => '"',
                Some('\\') | None => '\\',
                Some(_) => ' ',
            },
            letter if letter.is_whitespace() => ' ',
            letter => letter,
        };
        if resolved != ' ' || !plain.ends_with(' ') {
            plain.push(resolved);
        }
    }
    String::from(plain.trim())
}

/// A normalised text without the punctuation at its end.
fn key(text: &str) -> &str {
    text.trim_end_matches(['.', '!', '?', ':', ';', ',', '…', '。', ' '])
}

/// Paragraphs, headings and list items, each in one line, without their markers.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks: Vec<String> = vec![String::new()];
    for line in text.lines() {
        let trimmed = line.trim();
        let body = without_marker(trimmed);
        if trimmed.is_empty() || body.len() < trimmed.len() {
            blocks.push(String::new());
        }
        if let Some(block) = blocks.last_mut() {
            block.push_str(body);
            block.push(' ');
        }
    }
    blocks.retain(|block| !block.trim().is_empty());
    blocks
}

/// The text after `- `, `* `, `# ` or `1. `.
fn without_marker(line: &str) -> &str {
    let unnumbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if unnumbered.len() < line.len()
        && let Some(rest) = unnumbered.strip_prefix(". ")
    {
        return rest;
    }
    let rest = line.trim_start_matches(['-', '*', '#', '>']);
    match rest.strip_prefix(' ') {
        Some(rest) if rest.len() + 1 < line.len() => rest.trim_start(),
        _ => line,
    }
}

/// The sentences of a text: each ends with punctuation before white space or the end.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, letter) in text.char_indices() {
        let end = at + letter.len_utf8();
        let rest = text.get(end..).unwrap_or_default();
        let ends = match letter {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => rest.is_empty() || rest.starts_with(char::is_whitespace),
            _ => false,
        };
        if ends {
            found.extend(text.get(start..end));
            start = end;
        }
    }
    found.extend(text.get(start..).filter(|rest| !rest.trim().is_empty()));
    found
}

/// Texts in quotes, backticks, and the brackets of placeholders, with and without the brackets.
fn quoted(text: &str) -> Vec<&str> {
    const PAIRS: [(char, char); 6] = [
        ('"', '"'),
        ('`', '`'),
        ('“', '”'),
        ('<', '>'),
        ('[', ']'),
        ('{', '}'),
    ];
    let mut found = Vec::new();
    for (open, close) in PAIRS {
        let mut at = 0;
        while let Some(start) = text
            .get(at..)
            .and_then(|rest| rest.find(open))
            .map(|offset| at + offset)
        {
            let inner = start + open.len_utf8();
            let Some(length) = text.get(inner..).and_then(|rest| rest.find(close)) else {
                break;
            };
            let end = inner + length + close.len_utf8();
            found.extend(text.get(inner..inner + length));
            found.extend(text.get(start..end));
            // A closing quote may open the next text, so that a pair out of step is found as well.
            at = inner;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use ir::{ChatRequest, Message, Request, Role};
    use serde_json::{Value, json};

    use super::InstructionTexts;
    use crate::file_map::FileMap;
    use crate::lower::{LowerOptions, lower};
    use crate::module::Module;

    const PROMPT: &str = r#"Sort the message into one label. Do not answer it.
A thread counts as one message; its last part decides. Be brief.

- billing: money, invoices and refunds of any kind

Message: ${text}

For example: {"rationale": "The message is about money."}
Write <the reason in one sentence> there.
"#;

    fn module() -> Module {
        let schema = json!({
            "input": {"type": "object", "properties": {"text": {"type": "string"}}},
            "data": {"type": "object", "properties": {
                "label": {"enum": ["money, invoices and refunds of any kind"]},
                "rationale": {"type": "string", "description": "Why the label fits this message best. Be brief."},
                "notes": {"type": "array", "items": {"$ref": "#/$defs/note"}}
            }},
            "$defs": {"note": {"type": "string", "description": "What the team has to know in addition"}}
        });
        let files: FileMap = [
            ("module.yaml", String::from("name: m\nversion: 1.0.0\nresponsibility: sort messages by what they need\ntier: decision\n")),
            ("prompt.md", String::from(PROMPT)),
            ("schema.json", schema.to_string()),
        ]
        .into_iter()
        .collect();
        crate::load(&files).module.unwrap()
    }

    fn pointers(input: &str, data: &Value) -> Vec<String> {
        let module = module();
        let input = json!({"text": input});
        let request = lower(&module, input.as_object().unwrap(), &LowerOptions::default());
        let found = InstructionTexts::of(&module).violations(data.as_object().unwrap(), &request);
        found.into_iter().map(|violation| violation.pointer).collect()
    }

    #[test]
    fn copied_instructions_are_found() {
        for text in [
            "The message is about money.",
            "  The message\nis about   money ",
            "Sort the message into one label.",
            "A thread counts as one message; its last part decides.",
            "A thread counts as one message",
            "<the reason in one sentence>",
            "the reason in one sentence",
            "Why the label fits this message best.",
            "Why the label fits this message best. Be brief.",
            "sort messages by what they need",
        ] {
            assert_eq!(
                pointers("Hello.", &json!({"rationale": text})),
                ["/data/rationale"],
                "{text}"
            );
        }
        let nested = json!({"notes": ["ok", "What the team has to know in addition"]});
        assert_eq!(pointers("Hello.", &nested), ["/data/notes/1"]);
    }

    #[test]
    fn own_short_and_listed_texts_are_accepted() {
        for data in [
            json!({"rationale": "The message is about money, and the customer wants it back."}),
            json!({"rationale": "Do not answer it."}),
            json!({"label": "money, invoices and refunds of any kind"}),
        ] {
            assert!(pointers("Hello.", &data).is_empty(), "{data}");
        }
    }

    #[test]
    fn text_of_the_input_is_not_a_copy() {
        let data = || json!({"rationale": "The message is about money."});
        assert!(pointers("He says: The message\n is about money.", &data()).is_empty());
        assert_eq!(
            pointers("He says: the post is about money.", &data()),
            ["/data/rationale"]
        );
        // As part of JSON, with escapes.
        let module = module();
        let text = json!({"text": "first\nThe message is\nabout money.\n"});
        let user = format!("{PROMPT}\n\nInput:\n{text}");
        let chat = ChatRequest {
            messages: vec![Message::text(Role::User, user)],
            ..ChatRequest::default()
        };
        let request = Request::chat(String::from("r"), chat);
        let data = data();
        let found = InstructionTexts::of(&module).violations(data.as_object().unwrap(), &request);
        assert!(found.is_empty(), "{found:?}");
    }
}

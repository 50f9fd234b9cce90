//! The rendered prompts of the examples: they contain no text that a model could copy as its answer, and the
//! schema in them is complete.

use ir::{Request, Role};
use module::Module;
use module::envelope::{CheckOptions, check_reply};
use module::lower::{LowerOptions, lower};
use module::prompt::{Token, tokens};
use serde_json::Value;

use crate::examples::{Example, examples};

/// Shorter texts occur in answers by chance.
const COPYABLE_CHARS_MIN: usize = 20;

/// Replaces everything in a template that depends on the input.
const INPUT: char = '\u{1}';

fn request(example: &Example, module: &Module) -> Request {
    let input = example.json(&module.tests[0].input);
    lower(module, input.as_object().unwrap(), &LowerOptions::default())
}

/// The system message: the instructions, and the schema after them.
fn system(request: &Request) -> (String, Value) {
    let messages = &request.as_chat().unwrap().messages;
    let system = messages.iter().find(|message| message.role == Role::System);
    let text = system.unwrap().joined_text();
    let (instructions, schema) = text.split_once("`data` must match this JSON Schema:\n").unwrap();
    let schema = schema.lines().next().unwrap();
    (String::from(instructions), serde_json::from_str(schema).unwrap())
}

/// The instructions of a module, one paragraph or list item per line, with marks in place of the input.
fn instructions(module: &Module, request: &Request) -> Vec<String> {
    let mut text = system(request).0;
    text.push_str("\n\n");
    for token in tokens(&module.prompt) {
        match token {
            Token::Text(literal) => text.push_str(literal),
            Token::Placeholder(_) => text.push(INPUT),
        }
    }
    let mut paragraphs = vec![String::new()];
    for line in text.lines().map(str::trim) {
        let item = line.trim_start_matches(|c: char| c.is_ascii_digit() || ".-#".contains(c));
        let begins = line.is_empty() || item.len() < line.len() && item.starts_with(' ');
        if begins {
            paragraphs.push(String::new());
        }
        let paragraph = paragraphs.last_mut().unwrap();
        paragraph.push_str(if begins { item } else { line });
        paragraph.push(' ');
    }
    paragraphs
}

/// The envelope of a saved reply that the module accepts.
fn accepted(example: &Example, module: &Module) -> Value {
    let mut replies = example.replies().into_iter();
    let (_, reply) = replies
        .find(|(name, _)| name.starts_with("ok-") && !name.ends_with(".ndjson"))
        .unwrap();
    let envelope = check_reply(module, &reply, &CheckOptions::default()).envelope;
    assert!(envelope.is_ok(), "{}: {envelope:?}", example.name);
    envelope.into_value()
}

/// The texts between two marks of the same kind.
fn between(paragraph: &str, mark: char) -> impl Iterator<Item = &str> {
    paragraph.split(mark).skip(1).step_by(2)
}

#[test]
fn prompts_quote_no_answer() {
    for example in examples() {
        let module = example.module();
        let request = request(&example, &module);
        for paragraph in instructions(&module, &request) {
            for quoted in between(&paragraph, '"').chain(between(&paragraph, '`')) {
                let copyable = quoted.contains(' ') && quoted.chars().count() >= COPYABLE_CHARS_MIN;
                assert!(!copyable, "{}: {quoted}", example.name);
            }
        }
    }
}

/// Every sentence of the instructions is refused as the rationale of an answer that is otherwise accepted.
#[test]
fn sentences_of_prompts_are_refused_as_answers() {
    for example in examples() {
        let module = example.module();
        let options = CheckOptions {
            request: Some(request(&example, &module).into()),
            ..CheckOptions::default()
        };
        let request = options.request.as_deref().unwrap();
        let mut answer = accepted(&example, &module);
        let mut sentences = 0;
        for paragraph in instructions(&module, request) {
            for sentence in paragraph.split_inclusive(". ").map(str::trim) {
                if sentence.chars().count() <= COPYABLE_CHARS_MIN
                    || sentence.contains(INPUT)
                    || sentence.contains("{{")
                {
                    continue;
                }
                sentences += 1;
                answer["data"]["rationale"] = Value::from(sentence);
                let envelope = check_reply(&module, answer.to_string().as_bytes(), &options).envelope;
                let details = envelope.error().and_then(|error| error.details.as_ref());
                let reason = details.and_then(|details| details.get("reason"));
                assert_eq!(reason, Some(&Value::from("echo")), "{}: {sentence}", example.name);
            }
        }
        assert!(sentences > 3, "{}", example.name);
    }
}

#[test]
fn schemas_in_prompts_contain_the_definitions_they_refer_to() {
    let mut references = 0;
    for example in examples() {
        let module = example.module();
        let (_, schema) = system(&request(&example, &module));
        let text = schema.to_string();
        for part in text.split("\"$ref\":\"#").skip(1) {
            references += 1;
            let pointer = part.split('"').next().unwrap();
            assert!(schema.pointer(pointer).is_some(), "{}: {pointer}", example.name);
        }
        assert!(
            !text.contains("\"$ref\":\"") || text.contains("\"$defs\""),
            "{}",
            example.name
        );
    }
    assert!(references >= 10, "{references} references");
}

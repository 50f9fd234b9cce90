use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{PromptPiece, Token, render, tokens};
use crate::file_map::FileMap;
use crate::module::Module;

fn module(prompt: &str) -> Module {
    let files: FileMap = [
        (
            "module.yaml",
            "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\n",
        ),
        ("prompt.md", prompt),
        ("schema.json", r#"{"data":{"type":"object"}}"#),
    ]
    .into_iter()
    .collect();
    crate::load(&files).module.unwrap()
}

fn input(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => panic!("not an object"),
    }
}

/// The text of a prompt, with media shown as `<media>`.
fn check(template: &str, given: Value, expected: &str) {
    let prompt = render(&module(template), &input(given));
    let shown: Vec<&str> = prompt
        .pieces
        .iter()
        .map(|piece| match piece {
            PromptPiece::Text(text) => text,
            PromptPiece::Media => "<media>",
        })
        .collect();
    assert_eq!(shown.concat(), expected, "{template}");
}

#[test]
fn fills_every_placeholder() {
    let given = json!({"query": "one two  three", "n": 3, "a": {"b": "deep"}, "a.c": "flat"});
    for (template, expected) in [
        ("<$ARGUMENTS>", "<one two  three>"),
        ("$ARGUMENTS[0]/$ARGUMENTS[2]/$ARGUMENTS[9].", "one/three/."),
        ("$0 $1", "one two"),
        ("$10", ""),
        ("${n} ${a.b} ${a.c} ${missing}|", "3 deep flat |"),
        ("${a}", r#"{"b":"deep"}"#),
        ("$SCHEMA", "{\n  \"type\": \"object\"\n}"),
        ("look: $MEDIA_INPUTS now", "look: <media> now"),
    ] {
        check(template, given.clone(), expected);
    }
}

#[test]
fn keeps_text_that_is_not_a_placeholder() {
    for text in [
        "$",
        "$$",
        "cost $x",
        "$INPUTS",
        "${",
        "${}",
        "${a b}",
        "$ARGUMENTSX",
        "US$ 5",
        "é$",
    ] {
        check(text, json!({}), text);
    }
}

#[test]
fn treats_non_numeric_index_as_text() {
    check("$ARGUMENTS[x]", json!({"query": "q"}), "q[x]");
}

#[test]
fn reports_whether_template_shows_input() {
    for (template, shows) in [
        ("$INPUT", true),
        ("${a}", true),
        ("$0", true),
        ("$SCHEMA $MEDIA_INPUTS", false),
    ] {
        let prompt = render(&module(template), &input(json!({})));
        assert_eq!(prompt.shows_input, shows, "{template}");
    }
}

proptest! {
    #[test]
    fn does_not_expand_placeholders_in_input(text in r"[$\{\}A-Z0-9 \[\]]{0,24}") {
        let given = json!({"query": text, "INPUT": "no"});
        check("a $ARGUMENTS b", given.clone(), &format!("a {text} b"));
        check("a ${query} b", given, &format!("a {text} b"));
    }

    #[test]
    fn tokens_cover_the_whole_template(template in r"[$\{\}\[\]A-Zé0-9_ ]{0,40}|(\$(INPUT|ARGUMENTS|0|MEDIA_INPUTS)\[?0?\]?){0,6}") {
        let texts: usize = tokens(&template).map(|token| match token {
            Token::Text(text) => text.len(),
            Token::Placeholder(_) => 0,
        }).sum();
        let any = tokens(&template).any(|token| matches!(token, Token::Placeholder(_)));
        prop_assert!(texts <= template.len());
        prop_assert!(any || texts == template.len());
    }
}

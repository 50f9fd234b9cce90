use proptest::prelude::*;
use serde_json::json;

use super::{Comparison, Condition, Operand, Path, PathSegment, parse_condition, parse_path};

fn path(text: &str) -> Path {
    parse_path(text).expect("a path")
}

#[test]
fn parses_paths_with_hyphens_indices_and_wildcards() {
    let name = |text: &str| PathSegment::Name(String::from(text));
    assert_eq!(path("$").segments, []);
    assert_eq!(path("$.a.b").segments, [name("a"), name("b")]);
    assert_eq!(
        path("$.code-review.issues[*].tags[0]['odd name']").segments,
        [
            name("code-review"),
            name("issues"),
            PathSegment::Every,
            name("tags"),
            PathSegment::Index(0),
            name("odd name")
        ]
    );
}

#[test]
fn parses_conditions_with_usual_precedence() {
    let parsed =
        parse_condition("!exists($.a) || $.b.meta.confidence >= 0.8 && $.c == 'x'").expect("a condition");
    let expected = Condition::Any(vec![
        Condition::Not(Box::new(Condition::Exists(path("$.a")))),
        Condition::All(vec![
            Condition::Compare(
                Operand::Path(path("$.b.meta.confidence")),
                Comparison::GreaterOrEqual,
                Operand::Literal(json!(0.8)),
            ),
            Condition::Compare(
                Operand::Path(path("$.c")),
                Comparison::Equal,
                Operand::Literal(json!("x")),
            ),
        ]),
    ]);
    assert_eq!(parsed, expected);
}

#[test]
fn invalid_expressions_are_refused_with_position() {
    for (text, at) in [
        ("", 0),
        ("$.", 2),
        ("$.a ==", 6),
        ("$.a = 1", 4),
        ("$.a[x]", 4),
        ("($.a", 4),
        ("$.a == high", 11),
        ("$.a == 'x", 7),
        ("$.a && ", 7),
    ] {
        let error = parse_condition(text).expect_err(text);
        assert_eq!(error.at, at, "{text}: {error}");
    }
    assert!(parse_condition(&"(".repeat(10_000)).is_err());
    assert!(parse_condition(&"!".repeat(10_000)).is_err());
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "[$.a\\[\\]*0'\"()!&|<>= é-]{0,40}") {
        parse_condition(&text).ok();
        parse_path(&text).ok();
    }
}

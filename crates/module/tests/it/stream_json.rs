//! The push parser agrees with `serde_json` on accepted texts and values, independent of how the input is
//! split.

use module::stream::json::{JsonError, JsonErrorKind, JsonEvent, JsonParser, ReplyReader};
use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

/// An owned event, with adjacent text joined.
#[derive(Clone, Debug, PartialEq)]
enum OwnedEvent {
    Open(char),
    Close(char),
    Key(String),
    Text(String),
    TextEnd,
    Scalar(Value),
}

#[derive(Default)]
struct EventRecorder(Vec<OwnedEvent>);

impl EventRecorder {
    fn record(&mut self, event: &JsonEvent<'_>) {
        let owned = match event {
            JsonEvent::ObjectStart => OwnedEvent::Open('{'),
            JsonEvent::ArrayStart => OwnedEvent::Open('['),
            JsonEvent::ObjectEnd => OwnedEvent::Close('}'),
            JsonEvent::ArrayEnd => OwnedEvent::Close(']'),
            JsonEvent::Key(key) => OwnedEvent::Key(String::from(*key)),
            JsonEvent::TextDelta(text) => {
                assert!(!text.is_empty());
                if let Some(OwnedEvent::Text(before)) = self.0.last_mut() {
                    before.push_str(text);
                    return;
                }
                OwnedEvent::Text(String::from(*text))
            }
            JsonEvent::TextEnd => OwnedEvent::TextEnd,
            JsonEvent::Number(number) => OwnedEvent::Scalar(Value::Number(number.clone())),
            JsonEvent::Bool(value) => OwnedEvent::Scalar(Value::Bool(*value)),
            JsonEvent::Null => OwnedEvent::Scalar(Value::Null),
        };
        self.0.push(owned);
    }
}

fn parse(pieces: &[&[u8]]) -> (Vec<OwnedEvent>, Result<(), JsonError>) {
    let mut recorder = EventRecorder::default();
    let mut parser = JsonParser::new();
    let mut sink = |event: JsonEvent<'_>| recorder.record(&event);
    let result = pieces
        .iter()
        .try_for_each(|piece| parser.push(piece, &mut sink))
        .and_then(|()| parser.finish(&mut sink));
    (recorder.0, result)
}

fn build(events: &mut std::vec::IntoIter<OwnedEvent>) -> Value {
    match events.next() {
        Some(OwnedEvent::Scalar(value)) => value,
        Some(OwnedEvent::TextEnd) => json!(""),
        Some(OwnedEvent::Text(text)) => {
            assert_eq!(events.next(), Some(OwnedEvent::TextEnd));
            Value::String(text)
        }
        Some(OwnedEvent::Open('[')) => {
            let mut items = Vec::new();
            while events.as_slice().first() != Some(&OwnedEvent::Close(']')) {
                items.push(build(events));
            }
            events.next();
            Value::Array(items)
        }
        Some(OwnedEvent::Open(_)) => {
            let mut map = Map::new();
            while let Some(OwnedEvent::Key(key)) = events.next() {
                map.insert(key, build(events));
            }
            Value::Object(map)
        }
        other => panic!("{other:?} does not start a value"),
    }
}

/// Parses `text` at once and split at `cuts`, and compares with `serde_json`.
fn agree(text: &[u8], cuts: &[usize]) -> Result<(), TestCaseError> {
    let whole = parse(&[text]);
    let mut pieces = Vec::new();
    let mut rest = text;
    for cut in cuts {
        let (piece, after) = rest.split_at(cut % (rest.len() + 1));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    let parts = parse(&pieces);
    let bytes: Vec<&[u8]> = text.chunks(1).collect();
    let bytewise = parse(&bytes);
    let oracle = serde_json::from_slice::<Value>(text);
    prop_assert_eq!(whole.1.is_ok(), oracle.is_ok(), "{:?} {:?}", whole.1, oracle);
    prop_assert_eq!(parts.1.is_ok(), oracle.is_ok());
    prop_assert_eq!(bytewise.1.is_ok(), oracle.is_ok());
    if let Ok(oracle) = oracle {
        prop_assert_eq!(&whole.0, &parts.0);
        prop_assert_eq!(&whole.0, &bytewise.0);
        let built = build(&mut whole.0.into_iter());
        // Compared as text, because equality ignores the order of keys and the sign of zero.
        prop_assert_eq!(built.to_string(), oracle.to_string());
    }
    Ok(())
}

/// Documents with every kind of value, written with random spacing and escapes.
pub(crate) fn document() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(String::from("null")),
        any::<bool>().prop_map(|value| value.to_string()),
        number(),
        string(),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let blank = prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\n\t"), 1 => Just("\r\n  ")];
        let pair = (string(), inner.clone(), blank.clone());
        prop_oneof![
            (prop::collection::vec(inner, 0..5), blank.clone())
                .prop_map(|(items, blank)| format!("[{blank}{}{blank}]", items.join(","))),
            (prop::collection::vec(pair, 0..6), blank).prop_map(|(pairs, blank)| {
                let pairs: Vec<String> = pairs
                    .into_iter()
                    .map(|(key, value, gap)| format!("{gap}{key}{gap}:{gap}{value}{gap}"))
                    .collect();
                format!("{{{blank}{}}}", pairs.join(","))
            }),
        ]
    })
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<u64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_filter_map("finite", |n| Number::from_f64(n).map(|n| n.to_string())),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?",
        prop::sample::select(vec![
            "-0",
            "-0.0",
            "0e999",
            "9223372036854775808",
            "-9223372036854775809"
        ])
        .prop_map(String::from),
    ]
}

pub(crate) fn string() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        3 => "[a-c]{0,3}",
        1 => Just(String::from("a")),
        2 => any::<char>().prop_map(|c| if u32::from(c) < 0x20 || c == '"' || c == '\\' { String::from("é") } else { String::from(c) }),
        1 => prop::sample::select(vec!["\\n", "\\\"", "\\\\", "\\/", "\\b", "\\u00e9", "\\u4E2D", "\\uD83D\\uDE00", "\\u0000", ".", "[0]"])
            .prop_map(String::from),
        1 => "[ -!#-\\[\\]-~一-龥]{0,40}",
    ];
    prop::collection::vec(part, 0..4).prop_map(|parts| format!("\"{}\"", parts.concat()))
}

proptest! {
    #![proptest_config(crate::property::cases(400))]

    #[test]
    fn documents_parse_equally_at_any_split(
        text in document(),
        cuts in prop::collection::vec(0..64usize, 0..20),
    ) {
        prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
        agree(text.as_bytes(), &cuts)?;
    }

    #[test]
    fn damaged_documents_are_rejected_equally(
        text in document(),
        cuts in prop::collection::vec(0..16usize, 0..8),
        at in any::<prop::sample::Index>(),
        damage in prop_oneof![prop::sample::select(br#"{}[]:,"\ 0-+.eEtrufalsn/x"#.to_vec()), any::<u8>()],
        action in 0..3u8,
    ) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        match action {
            0 => bytes[at] = damage,
            1 => bytes.insert(at, damage),
            _ => drop(bytes.remove(at)),
        }
        agree(&bytes, &cuts)?;
    }
}

#[test]
fn hard_cases_agree() {
    let deep = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    let mut cases: Vec<Vec<u8>> = vec![deep(127), deep(128)];
    let texts = [
        "",
        " ",
        "{",
        "{\"a\"",
        "[1,]",
        "{\"a\":1,}",
        "[,1]",
        "{,}",
        "01",
        "1.",
        ".5",
        "1e",
        "1e+",
        "+1",
        "--1",
        "-",
        "1e400",
        "-1e400",
        "1e-400",
        "1.0e5",
        "123456789012345678901234567890",
        "tru",
        "truex",
        "nul",
        "nulL",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud800x\"",
        "\"\\u12g4\"",
        "\"\\x\"",
        "\"\u{1}\"",
        "\"\u{7f}\"",
        "\"a\nb\"",
        "{\"a\":1,\"a\":{\"b\":2},\"a\":\"x\"}",
        "{\"\":\"\"}",
        "[1 2]",
        "{\"a\" 1}",
        "{a:1}",
        "\u{feff}{}",
        "{} x",
        "[1]]",
        "}",
        "{\"\\u0061\":1}",
        "1 ",
        " 1",
        "[-]",
    ];
    cases.extend(texts.iter().map(|text| text.as_bytes().to_vec()));
    cases.extend([
        b"\"\xff\"".to_vec(),
        b"\"\xe4\xb8\"".to_vec(),
        b"\"\xe4\xb8".to_vec(),
        b"\"\xed\xa0\x80\"".to_vec(),
    ]);
    for case in cases {
        agree(&case, &[1, 2, 3, 1, 2])
            .unwrap_or_else(|error| panic!("{:?}: {error}", String::from_utf8_lossy(&case)));
    }
}

#[test]
fn errors_have_a_position() {
    let error = |text: &str| parse(&[text.as_bytes()]).1.unwrap_err();
    assert_eq!(error("{\"a\": x}").offset, 6);
    assert_eq!(error("[1,\"\\q\"]").kind, JsonErrorKind::BadEscape);
    assert_eq!(
        error("[\"a\nb\"]"),
        JsonError {
            kind: JsonErrorKind::ControlCharacter,
            offset: 3
        }
    );
    assert_eq!(error("[1").kind, JsonErrorKind::UnexpectedEnd);
    assert_eq!(error("[1e999]").kind, JsonErrorKind::NumberRange);
    assert_eq!(
        error(&"[".repeat(200)),
        JsonError {
            kind: JsonErrorKind::TooDeep,
            offset: 127
        }
    );
    assert_eq!(
        error(&format!("[{}]", "1".repeat(5_000))).kind,
        JsonErrorKind::TooLong
    );
}

fn read_reply(text: &str, size: usize) -> (Vec<OwnedEvent>, ReplyReader) {
    let mut recorder = EventRecorder::default();
    let mut reader = ReplyReader::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(size));
        reader.push_str(piece, &mut |event| recorder.record(&event));
        rest = after;
    }
    (recorder.0, reader)
}

#[track_caller]
fn check_reply(text: &str, expected: Option<&Value>) {
    for size in 1..=text.len().max(1) {
        let (events, reader) = read_reply(text, size);
        assert_eq!(reader.is_done(), expected.is_some(), "{text} in pieces of {size}");
        match expected {
            Some(expected) => assert_eq!(build(&mut events.into_iter()), *expected, "pieces of {size}"),
            None => assert_eq!(events, [], "{text} in pieces of {size}"),
        }
    }
}

#[test]
fn finds_document_in_prose() {
    let document = json!({"a": "}`{", "b": [1]});
    check_reply(&document.to_string(), Some(&document));
    check_reply(&format!("\u{feff}{document}"), Some(&document));
    check_reply(
        &format!("```json\n{document}\n```\nDone {{\"x\": 1}}."),
        Some(&document),
    );
    check_reply(
        &format!("As {{like this}} or {{}} or {{\"so\"}} or {{\"a\": b}} or {{{{{document} etc."),
        Some(&document),
    );
    check_reply(&format!("{{ {}{document}", " ".repeat(20)), Some(&document));
    // The document begins inside text that was buffered for an earlier brace.
    check_reply("{\"so {\"a\": 1}", Some(&json!({"a": 1})));
    check_reply("no {braces} that {\"matter\" and {}", None);
    check_reply("{\"a\"", None);
}

#[test]
fn truncated_document_is_an_error() {
    let (events, reader) = read_reply("x {\"a\": 1, oops", 3);
    assert_eq!(events.len(), 3);
    assert_eq!(
        reader.error().map(|error| error.kind),
        Some(JsonErrorKind::UnexpectedByte)
    );
}

#[test]
fn any_bytes_are_parsed_or_rejected() {
    bolero::check!().with_iterations(2_000).for_each(|bytes: &[u8]| {
        if let Err(error) = agree(bytes, &[1, 3, 2]) {
            panic!("{error}");
        }
        read_reply(&String::from_utf8_lossy(bytes), 3);
    });
}

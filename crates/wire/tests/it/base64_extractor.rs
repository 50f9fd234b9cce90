//! Extraction of long strings from a JSON text: any split of the input gives the same output, and
//! reinserting the bytes restores the input.

use std::io;

use ir::media::Base64;
use proptest::prelude::*;
use serde_json::{Value, json};
use wire::base64_extractor::{Base64Extractor, BytesSink, ExtractError, ExtractedJson};

const KEY: &str = "b64_json";
const CHARS_MAX: usize = 24;

#[derive(Debug, Default, PartialEq, Eq)]
struct Taken {
    whole: Vec<Vec<u8>>,
    open: Vec<u8>,
    /// The remaining capacity in bytes.
    room: Option<usize>,
}

impl BytesSink for Taken {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.open.extend_from_slice(bytes);
        match self.room {
            Some(room) if self.open.len() > room => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    fn close(&mut self) -> io::Result<()> {
        self.whole.push(std::mem::take(&mut self.open));
        Ok(())
    }
}

fn lifted<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<(ExtractedJson, Taken), ExtractError> {
    let mut taken = Taken::default();
    let mut lift = Base64Extractor::new(KEY, CHARS_MAX, 42);
    for piece in pieces {
        lift.push(piece, &mut taken)?;
    }
    Ok((lift.finish()?, taken))
}

fn whole(text: &str) -> Result<(ExtractedJson, Taken), ExtractError> {
    lifted([text.as_bytes()])
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n * 7 % 256) as u8).collect()
}

fn base64(length: usize) -> String {
    Base64::from_bytes(&bytes(length)).into_string()
}

#[test]
fn extracts_only_long_values_of_the_key() {
    let long = base64(100);
    for stays in [
        json!({"b64_json": base64(18)}),
        json!({"url": long}),
        json!(["b64_json", long]),
        json!({"a": "b64_json", "b": long}),
        json!({"b64_json": [long]}),
        json!({"a\"b64_json": long, "\\": "\"b64_json\":\""}),
        json!({"b64_json": null, "c": long}),
    ] {
        let text = stays.to_string();
        let (left, taken) = whole(&text).unwrap();
        assert_eq!(left.text, text.as_bytes(), "{text}");
        assert_eq!((left.placeholders.len(), taken), (0, Taken::default()), "{text}");
    }
    let text =
        format!("{{\"data\":[{{ \"b64_json\" \n:\t\"{long}\"}},{{\"b64_json\":\"{long}\"}}],\"n\":1}}");
    let (left, taken) = whole(&text).unwrap();
    assert_eq!(taken.whole, [bytes(100), bytes(100)]);
    let value: Value = serde_json::from_slice(&left.text).unwrap();
    let [first, second] = left.placeholders.as_slice() else {
        panic!("{left:?}")
    };
    assert_eq!(
        value,
        json!({"data": [{"b64_json": first}, {"b64_json": second}], "n": 1})
    );
    assert_ne!(first, second);
}

/// Every representation that JSON escapes and base64 variants allow.
#[test]
fn escapes_and_base64_variants_are_equivalent() {
    let plain = Base64::from_bytes(&[0xff; 64]).into_string();
    assert!(plain.contains('/') && plain.ends_with("=="), "{plain}");
    for spelled in [
        plain.clone(),
        plain.replace('/', "\\/"),
        plain.replace('/', "\\u002f"),
        plain.replace('/', "\\u002F"),
        plain.replace('/', "_"),
        plain.replace('=', "\\u003d"),
        plain.trim_end_matches('=').to_owned(),
        plain.replacen('/', "/\\r\\n", 20),
    ] {
        let (left, taken) = whole(&format!("{{\"b64_json\":\"{spelled}\"}}")).unwrap();
        assert_eq!(taken.whole, [vec![0xff; 64]], "{spelled}");
        assert_eq!(
            left.text,
            format!("{{\"b64_json\":\"{}\"}}", left.placeholders[0]).as_bytes()
        );
    }
}

#[test]
fn rejects_invalid_base64() {
    let long = base64(100);
    for broken in [
        format!("{long}!"),
        format!("={long}"),
        long.replacen('h', "=", 1),
        format!("{}=", long.trim_end_matches('=')),
        format!("{}A", base64(99)),
        format!("{long}=="),
        format!("{long}\\u00e4"),
        format!("{long}\\u012f"),
        format!("{long}\\u0_2f"),
        format!("{long}\\\""),
        format!("{long}ä"),
    ] {
        let result = whole(&format!("{{\"b64_json\":\"{broken}\"}}"));
        assert!(
            matches!(result, Err(ExtractError::NotBase64)),
            "{broken}: {result:?}"
        );
    }
}

#[test]
fn rejects_truncated_text() {
    let text = format!("{{\"b64_json\":\"{}\"", base64(100));
    for end in 0..=text.len() {
        let result = lifted([&text.as_bytes()[..end]]);
        let quotes = text.bytes().take(end).filter(|byte| *byte == b'"').count();
        match quotes % 2 {
            0 => assert!(result.is_ok(), "{end}"),
            _ => assert!(matches!(result, Err(ExtractError::Truncated)), "{end}"),
        }
    }
}

#[test]
fn sink_error_ends_extraction() {
    let mut taken = Taken {
        room: Some(30_000),
        ..Taken::default()
    };
    let text = format!("{{\"b64_json\":\"{}\"}}", base64(60_000));
    let mut lift = Base64Extractor::new(KEY, CHARS_MAX, 42);
    let result = lift.push(text.as_bytes(), &mut taken).unwrap_err();
    assert!(
        matches!(&result, ExtractError::Sink(error) if error.kind() == io::ErrorKind::StorageFull),
        "{result:?}"
    );
}

/// Independent of the length of a string, only the characters needed to detect a long string are buffered.
#[test]
fn long_strings_are_not_buffered() {
    let mut lift = Base64Extractor::new(KEY, CHARS_MAX, 42);
    let mut taken = Taken::default();
    lift.push(b"{\"b64_json\":\"", &mut taken).unwrap();
    for _ in 0..10_000 {
        lift.push(b"QUJDREVGR0hJSktM", &mut taken).unwrap();
        assert!(lift.text_bytes() < 100);
    }
    assert!(taken.open.len() > 100_000);
}

fn document() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        (0_usize..80).prop_map(|length| format!("{{\"b64_json\":\"{}\"}}", base64(length))),
        (0_usize..30_000)
            .prop_map(|length| format!("{{\"b64_json\" : \"{}\"}}", base64(length).replace('/', "\\/"))),
        any::<String>().prop_map(|text| json!({"revised_prompt": text}).to_string()),
        any::<String>().prop_map(|text| json!({text: "b64_json"}).to_string()),
    ];
    proptest::collection::vec(piece, 0..5).prop_map(|pieces| format!("[{}]", pieces.join(" ,\n")))
}

proptest! {
    #[test]
    fn split_positions_do_not_change_output(text in document(), mut cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        cuts.sort_by_key(|cut| cut.index(text.len()));
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts {
            let at = cut.index(text.len());
            pieces.push(&text.as_bytes()[from..at]);
            from = at;
        }
        pieces.push(&text.as_bytes()[from..]);
        prop_assert_eq!(lifted(pieces).unwrap(), whole(&text).unwrap());
    }

    #[test]
    fn reinserted_bytes_restore_the_text(text in document()) {
        let (left, taken) = whole(&text).unwrap();
        let mut filled = String::from_utf8(left.text).unwrap();
        prop_assert_eq!(left.placeholders.len(), taken.whole.len());
        for (placeholder, bytes) in left.placeholders.iter().zip(&taken.whole) {
            prop_assert!(Base64::from_bytes(bytes).as_str().len() > CHARS_MAX / 2);
            filled = filled.replace(placeholder, Base64::from_bytes(bytes).as_str());
        }
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        prop_assert_eq!(read(&filled), read(&text));
    }

    #[test]
    fn byte_by_byte_input_gives_the_same_result(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let text = [b"{\"b64_json\":\"QUJDREVGR0hJSktMTU5PUFFS".as_slice(), &bytes].concat();
        let (one, other) = (lifted([text.as_slice()]), lifted(text.chunks(1)));
        prop_assert_eq!(format!("{one:?}"), format!("{other:?}"));
    }
}

//! Chunks as one append-only text: any split of the model's output yields the text of the data, and emitted
//! text is never retracted.

use std::collections::BTreeSet;
use std::fmt;

use module::manifest::ChunkType;
use module::stream::{AppendOnlyText, Chunk, Projector, ProjectorOptions, Retracted};
use proptest::prelude::*;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

use crate::stream_projection::{cuts, reply};

const DELTAS: ProjectorOptions = ProjectorOptions {
    chunk_type: ChunkType::Delta,
    buffer_bytes: 0,
};

/// A projector, and the append-only text of its output.
struct Reader {
    projector: Projector,
    text: AppendOnlyText,
    emitted: Vec<String>,
    /// The projector retracted data after text had been emitted.
    restarted: bool,
}

impl Reader {
    fn new(buffer_bytes: usize) -> Self {
        Self {
            projector: Projector::new(ProjectorOptions {
                buffer_bytes,
                ..DELTAS
            }),
            text: AppendOnlyText::new(),
            emitted: Vec::new(),
            restarted: false,
        }
    }

    fn step(&mut self, act: impl FnOnce(&mut Projector, &mut Vec<Chunk>)) -> Result<(), Retracted> {
        let mut chunks = Vec::new();
        act(&mut self.projector, &mut chunks);
        for chunk in chunks {
            let is_restart = matches!(&chunk, Chunk::Snapshot { field, .. } if field == "data");
            self.restarted |= is_restart && !self.text.is_empty();
            self.emitted.push(self.text.push(&chunk)?);
        }
        Ok(())
    }

    fn write(&mut self, text: &str, cuts: &[(usize, bool)]) -> Result<(), Retracted> {
        let mut rest = text;
        for (cut, pause) in cuts {
            let at = rest.ceil_char_boundary(cut % (rest.len() + 1));
            let (piece, after) = rest.split_at(at);
            self.step(|projector, out| projector.push_text(piece, out))?;
            if *pause {
                self.step(|projector, out| projector.flush_idle(out))?;
            }
            rest = after;
        }
        self.step(|projector, out| projector.push_text(rest, out))
    }

    fn finish(&mut self, data: &Map<String, Value>) -> Result<String, Retracted> {
        self.step(|projector, out| projector.finish(data, out))?;
        self.emitted.push(self.text.finish(data)?);
        Ok(self.emitted.concat())
    }
}

fn map(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

/// A JSON text without duplicate keys.
struct Plain;

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Plain {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text without repeated keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut seen = BTreeSet::new();
        while let Some((key, Self)) = map.next_entry::<String, Self>()? {
            if !seen.insert(key) {
                return Err(A::Error::custom("duplicate key"));
            }
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while let Some(Self) = list.next_element()? {}
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }
}

proptest! {
    #![proptest_config(crate::property::cases(600))]

    #[test]
    fn every_cut_gives_the_same_text((text, data) in reply(), buffer in 0..40usize, cuts in cuts()) {
        let mut reader = Reader::new(buffer);
        let whole = reader.write(&text, &cuts).and_then(|()| reader.finish(&data));
        match whole {
            Ok(emitted) => {
                let read: Map<String, Value> = serde_json::from_str(&emitted).unwrap();
                prop_assert_eq!(&read, &data);
                // Without a restart the text equals that of a complete answer.
                if serde_json::from_str::<Plain>(&emitted).is_ok() {
                    prop_assert_eq!(emitted, serde_json::to_string(&data).unwrap());
                }
            }
            // Only a restart can contradict emitted text.
            Err(Retracted) => prop_assert!(reader.restarted, "{}", text),
        }
    }

    /// An attempt with the same answer continues the text; a different answer emits nothing.
    #[test]
    fn restart_continues_text_or_is_rejected(
        (first, _) in reply(),
        (text, data) in reply(),
        at in any::<prop::sample::Index>(),
        cuts in cuts(),
        same in any::<bool>(),
    ) {
        let first = if same { &text } else { &first };
        let (begun, _) = first.split_at(first.floor_char_boundary(at.index(first.len() + 1)));
        let mut reader = Reader::new(0);
        prop_assume!(reader.write(begun, &cuts).is_ok());
        let before = reader.emitted.concat();
        let emitted = reader
            .step(|projector, out| projector.restart(out))
            .and_then(|()| reader.write(&text, &[]))
            .and_then(|()| reader.finish(&data));
        prop_assert!(reader.emitted.concat().starts_with(&before));
        if let Ok(emitted) = emitted {
            let read: Map<String, Value> = serde_json::from_str(&emitted).unwrap();
            prop_assert_eq!(read, data);
        }
    }
}

#[test]
fn text_is_emitted_incrementally() {
    let reply = r#"{"ok":true,"meta":{},"data":{"rationale":"so \"it\" is","n":3,"list":["a",{}],"deep":{"a.b":"end"}}}"#;
    let data = json!({"rationale": "so \"it\" is", "n": 3, "list": ["a", {}], "deep": {"a.b": "end"}});
    let mut reader = Reader::new(0);
    let (begun, rest) = reply.split_at(46);
    reader.write(begun, &[]).unwrap();
    assert_eq!(reader.emitted.concat(), r#"{"rationale":"so "#);
    reader.write(rest, &[(1, false); 40]).unwrap();
    assert_eq!(reader.finish(&map(data.clone())).unwrap(), data.to_string());
    assert!(reader.emitted.iter().filter(|piece| !piece.is_empty()).count() > 8);
}

#[test]
fn identical_answer_from_another_back_end_continues_text() {
    let data = json!({"a": "one two", "n": [1, 2]});
    let reply = data.to_string();
    for cut in 0..reply.len() {
        let mut reader = Reader::new(0);
        reader.write(reply.split_at(cut).0, &[]).unwrap();
        reader.step(|projector, out| projector.restart(out)).unwrap();
        reader.write(&reply, &[(3, false); 4]).unwrap();
        assert_eq!(reader.finish(&map(data.clone())).unwrap(), reply, "{cut}");
    }
}

#[test]
fn different_answer_is_rejected_without_emitting_text() {
    let mut reader = Reader::new(0);
    reader.write(r#"{"a":"one tw"#, &[]).unwrap();
    reader.step(|projector, out| projector.restart(out)).unwrap();
    assert_eq!(reader.write(r#"{"a":"one four"}"#, &[]), Err(Retracted));
    assert_eq!(reader.emitted.concat(), r#"{"a":"one tw"#);
    // An answer that is shorter than the emitted text is rejected as well.
    let mut reader = Reader::new(0);
    reader.write(r#"{"a":"one tw"#, &[]).unwrap();
    reader.step(|projector, out| projector.restart(out)).unwrap();
    reader.write(r#"{"a":"one"}"#, &[]).unwrap();
    assert_eq!(reader.finish(&map(json!({"a": "one"}))), Err(Retracted));
}

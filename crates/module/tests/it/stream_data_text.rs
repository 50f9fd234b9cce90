//! Chunks as one text for readers that take nothing back: any cut of the model's words gives the text of the
//! data, and what was said is never contradicted.

use std::collections::BTreeSet;
use std::fmt;

use module::manifest::ChunkType;
use module::stream::{Chunk, AppendOnlyText, Projector, ProjectorOptions, Retracted};
use proptest::prelude::*;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

use crate::stream_json::at_least;
use crate::stream_projection::{cuts, reply};

const DELTAS: ProjectorOptions = ProjectorOptions {
    chunk_type: ChunkType::Delta,
    buffer_bytes: 0,
};

/// A model that writes, and a reader that keeps all it is told.
struct Reader {
    projector: Projector,
    text: AppendOnlyText,
    told: Vec<String>,
    /// Everything was taken back at some time after something had been said.
    began_anew: bool,
}

impl Reader {
    fn new(buffer_bytes: usize) -> Self {
        Self {
            projector: Projector::new(ProjectorOptions {
                buffer_bytes,
                ..DELTAS
            }),
            text: AppendOnlyText::new(),
            told: Vec::new(),
            began_anew: false,
        }
    }

    fn step(&mut self, act: impl FnOnce(&mut Projector, &mut Vec<Chunk>)) -> Result<(), Retracted> {
        let mut chunks = Vec::new();
        act(&mut self.projector, &mut chunks);
        for chunk in chunks {
            let anew = matches!(&chunk, Chunk::Snapshot { field, .. } if field == "data");
            self.began_anew |= anew && !self.text.is_empty();
            self.told.push(self.text.push(&chunk)?);
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
        self.told.push(self.text.finish(data)?);
        Ok(self.told.concat())
    }
}

fn map(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

/// A JSON text in which no object has a key twice.
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
                return Err(A::Error::custom("a key stands twice"));
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
    #![proptest_config(at_least(600))]

    #[test]
    fn every_cut_gives_the_same_text((text, data) in reply(), buffer in 0..40usize, cuts in cuts()) {
        let mut reader = Reader::new(buffer);
        let whole = reader.write(&text, &cuts).and_then(|()| reader.finish(&data));
        match whole {
            Ok(told) => {
                let read: Map<String, Value> = serde_json::from_str(&told).unwrap();
                prop_assert_eq!(&read, &data);
                // Written once, it is the very text that a whole answer has.
                if serde_json::from_str::<Plain>(&told).is_ok() {
                    prop_assert_eq!(told, serde_json::to_string(&data).unwrap());
                }
            }
            // Nothing but a new beginning can contradict what was said.
            Err(Retracted) => prop_assert!(reader.began_anew, "{}", text),
        }
    }

    /// Another attempt that says the same is not noticed; one that does not is never shown.
    #[test]
    fn a_new_beginning_goes_on_or_is_refused(
        (first, _) in reply(),
        (text, data) in reply(),
        at in any::<prop::sample::Index>(),
        cuts in cuts(),
        same in any::<bool>(),
    ) {
        let first = if same { &text } else { &first };
        let (begun, _) = first.split_at(first.floor_char_boundary(at.index(first.len() + 1)));
        let mut reader = Reader::new(0);
        if reader.write(begun, &cuts).is_err() {
            return Ok(());
        }
        let before = reader.told.concat();
        let told = reader
            .step(|projector, out| projector.restart(out))
            .and_then(|()| reader.write(&text, &[]))
            .and_then(|()| reader.finish(&data));
        prop_assert!(reader.told.concat().starts_with(&before));
        if let Ok(told) = told {
            let read: Map<String, Value> = serde_json::from_str(&told).unwrap();
            prop_assert_eq!(read, data);
        }
    }
}

#[test]
fn text_comes_as_it_grows() {
    let reply = r#"{"ok":true,"meta":{},"data":{"rationale":"so \"it\" is","n":3,"list":["a",{}],"deep":{"a.b":"end"}}}"#;
    let data = json!({"rationale": "so \"it\" is", "n": 3, "list": ["a", {}], "deep": {"a.b": "end"}});
    let mut reader = Reader::new(0);
    let (begun, rest) = reply.split_at(46);
    reader.write(begun, &[]).unwrap();
    assert_eq!(reader.told.concat(), r#"{"rationale":"so "#);
    reader.write(rest, &[(1, false); 40]).unwrap();
    assert_eq!(reader.finish(&map(data.clone())).unwrap(), data.to_string());
    assert!(reader.told.iter().filter(|piece| !piece.is_empty()).count() > 8);
}

#[test]
fn the_same_answer_from_another_back_end_is_not_noticed() {
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
fn another_answer_is_refused_and_nothing_of_it_is_shown() {
    let mut reader = Reader::new(0);
    reader.write(r#"{"a":"one tw"#, &[]).unwrap();
    reader.step(|projector, out| projector.restart(out)).unwrap();
    assert_eq!(reader.write(r#"{"a":"one four"}"#, &[]), Err(Retracted));
    assert_eq!(reader.told.concat(), r#"{"a":"one tw"#);
    // Nor is an answer good that ends before what was said.
    let mut reader = Reader::new(0);
    reader.write(r#"{"a":"one tw"#, &[]).unwrap();
    reader.step(|projector, out| projector.restart(out)).unwrap();
    reader.write(r#"{"a":"one"}"#, &[]).unwrap();
    assert_eq!(reader.finish(&map(json!({"a": "one"}))), Err(Retracted));
}

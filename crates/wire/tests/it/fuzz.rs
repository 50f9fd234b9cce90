//! Decoders do not panic on arbitrary bytes and documents.

use std::sync::atomic::{AtomicUsize, Ordering};

use ir::{Component, Dialect, Ledger};
use serde_json::Value;
use wire::base64_extractor::{Base64Extractor, BytesSink};
use wire::media::{ConversionContext, Locality};
use wire::{Decoder, chat, document, error_body, media, messages};

use crate::fixtures::{disturb, fixtures};

#[test]
fn stream_decoders_accept_arbitrary_bytes() {
    bolero::check!().with_iterations(1500).for_each(|bytes: &[u8]| {
        for dialect in chat::DIALECTS {
            let mut decoder = Decoder::new(*dialect).unwrap();
            let mut events = Vec::new();
            // Half of the inputs are framed.
            let framed = [b"data: {".as_slice(), bytes, b"}\n\n"].concat();
            for input in [bytes, framed.as_slice()] {
                decoder.push(input, &mut events);
            }
            decoder.finish(&mut events);
        }
    });
}

#[test]
fn document_decoders_accept_arbitrary_json() {
    let kinds = [".request.json", ".response.json"];
    let sources = chat::DIALECTS
        .iter()
        .flat_map(|dialect| kinds.map(|kind| (*dialect, kind)));
    let seeds: Vec<Value> = sources
        .flat_map(|(dialect, kind)| fixtures(dialect, kind))
        .map(|(_, body)| body)
        .collect();
    let decoded = AtomicUsize::new(0);
    bolero::check!().with_iterations(1500).for_each(|bytes: &[u8]| {
        error_body::decode(Dialect::OpenaiChat, 502, None, bytes);
        let at = bytes.iter().map(|byte| usize::from(*byte)).sum::<usize>();
        let mut seeded = seeds[at % seeds.len()].clone();
        disturb(&mut seeded, &(at, 3, String::from_utf8_lossy(bytes).into()));
        for value in serde_json::from_slice(bytes).into_iter().chain([seeded]) {
            decoded.fetch_add(convert_into_every_dialect(&value), Ordering::Relaxed);
        }
    });
    assert!(decoded.into_inner() >= 1_000, "nearly every document was refused");
}

/// The number of decoders that accept the document.
fn convert_into_every_dialect(value: &Value) -> usize {
    let mut decoded = 0;
    let mut ledger = Ledger::new(Component::Adapter);
    for dialect in Dialect::ALL {
        if let Ok(request) = document::decode_request(dialect, value.clone()) {
            document::encode_request(dialect, &request, &mut ledger).ok();
        }
        if let Ok(response) = document::decode_response(dialect, value.clone()) {
            document::encode_response(dialect, &response, &mut ledger).ok();
        }
    }
    for dialect in chat::DIALECTS {
        if let Ok(request) = chat::decode_request(*dialect, value.clone()) {
            decoded += 1;
            for target in chat::DIALECTS {
                chat::encode_request(*target, &request, &mut ledger).ok();
            }
        }
        if let Ok(response) = chat::decode_response(*dialect, value.clone()) {
            decoded += 1;
            for target in chat::DIALECTS {
                chat::encode_response(*target, &response, &mut ledger).ok();
            }
        }
    }
    decoded
}

/// Bytes are parsed as JSON, or inserted as ids, URLs, base64 and media types.
#[test]
fn media_decoders_accept_arbitrary_input() {
    let aliases = ir::media::ForeignIds::default();
    let setting = ConversionContext {
        place: Locality::Local,
        aliases: &aliases,
    };
    bolero::check!().with_iterations(300).for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let read = serde_json::from_slice::<Value>(bytes);
        let seeded = crate::media::examples().into_iter().map(|(_, mut example)| {
            disturb(&mut example, &(bytes.len(), 3, text.as_ref().into()));
            example
        });
        for value in read.into_iter().chain(seeded) {
            for dialect in media::DIALECTS {
                let Ok(read) = media::decode(*dialect, value.clone(), &setting) else {
                    continue;
                };
                media::may_persist(&read).ok();
                for target in media::DIALECTS {
                    media::encode(*target, &read, &setting, &mut Ledger::new(Component::Adapter)).ok();
                }
            }
        }
    });
}

#[test]
fn message_decoders_accept_arbitrary_input() {
    let aliases = ir::media::ForeignIds::default();
    let setting = ConversionContext {
        place: Locality::Local,
        aliases: &aliases,
    };
    bolero::check!().with_iterations(100).for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let read = serde_json::from_slice::<Value>(bytes);
        let seeded = crate::messages::examples().into_iter().map(|(_, mut example)| {
            disturb(&mut example, &(bytes.len(), 3, text.as_ref().into()));
            example
        });
        for value in read.into_iter().chain(seeded) {
            for dialect in messages::DIALECTS {
                let Ok(mut read) = messages::decode(*dialect, value.clone(), &setting) else {
                    continue;
                };
                messages::complete_pairs(&mut read.messages);
                for target in messages::DIALECTS {
                    messages::encode(*target, &read, &setting, &mut Ledger::new(Component::Adapter)).ok();
                }
            }
        }
    });
}

/// Counts the bytes that it receives.
#[derive(Debug, Default)]
struct Count(usize);

impl BytesSink for Count {
    fn take(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0 += bytes.len();
        Ok(())
    }

    fn close(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// For any input, the extracted bytes and the remaining text are together not larger than the input.
#[test]
fn extractor_accepts_arbitrary_input() {
    bolero::check!().with_iterations(1500).for_each(|bytes: &[u8]| {
        // Half of the inputs are inside a long string.
        let inside = [b"{\"b64_json\":\"QUJDREVG".as_slice(), bytes].concat();
        for input in [bytes, inside.as_slice()] {
            let (mut lift, mut taken) = (Base64Extractor::new("b64_json", 8, 1), Count::default());
            let went = input.chunks(7).try_for_each(|piece| lift.push(piece, &mut taken));
            assert!(taken.0 <= input.len());
            if went.is_ok()
                && let Ok(left) = lift.finish()
            {
                let stood: usize = left.placeholders.iter().map(String::len).sum();
                assert!(left.text.len() - stood <= input.len());
            }
        }
    });
}

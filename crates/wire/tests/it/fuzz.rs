//! Decoders do not panic on arbitrary bytes and documents.

use ir::{Component, Dialect, Ledger};
use wire::base64_extractor::{Base64Extractor, BytesSink};
use wire::media::{ConversionContext, Locality};
use wire::{Decoder, chat, document, error_body, media, messages};

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
    bolero::check!().with_iterations(1500).for_each(|bytes: &[u8]| {
        error_body::decode(Dialect::OpenaiChat, 502, None, bytes);
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) else {
            return;
        };
        for dialect in Dialect::ALL {
            let mut ledger = Ledger::new(Component::Adapter);
            if let Ok(request) = document::decode_request(dialect, value.clone()) {
                document::encode_request(dialect, &request, &mut ledger).ok();
            }
            if let Ok(response) = document::decode_response(dialect, value.clone()) {
                document::encode_response(dialect, &response, &mut ledger).ok();
            }
        }
        for dialect in chat::DIALECTS {
            let mut ledger = Ledger::new(Component::Adapter);
            if let Ok(request) = chat::decode_request(*dialect, value.clone()) {
                for target in chat::DIALECTS {
                    chat::encode_request(*target, &request, &mut ledger).ok();
                }
            }
            if let Ok(response) = chat::decode_response(*dialect, value.clone()) {
                for target in chat::DIALECTS {
                    chat::encode_response(*target, &response, &mut ledger).ok();
                }
            }
        }
    });
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
        let read = serde_json::from_slice::<serde_json::Value>(bytes);
        let seeded = crate::media::examples().into_iter().map(|(_, mut example)| {
            crate::fixtures::disturb(&mut example, &(bytes.len(), 3, text.as_ref().into()));
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
        let read = serde_json::from_slice::<serde_json::Value>(bytes);
        let seeded = crate::messages::examples().into_iter().map(|(_, mut example)| {
            crate::fixtures::disturb(&mut example, &(bytes.len(), 3, text.as_ref().into()));
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

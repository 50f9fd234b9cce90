//! No bytes and no documents make a decoder panic.

use ir::{Dialect, Ledger, Party};
use wire::{Decoder, chat, error_body};

#[test]
fn stream_decoders_stand_any_bytes() {
    bolero::check!().with_iterations(1500).for_each(|bytes: &[u8]| {
        for dialect in chat::DIALECTS {
            let mut decoder = Decoder::new(*dialect).unwrap();
            let mut events = Vec::new();
            // Half of the tries get past the framing.
            let framed = [b"data: {".as_slice(), bytes, b"}\n\n"].concat();
            for input in [bytes, framed.as_slice()] {
                decoder.push(input, &mut events);
            }
            decoder.finish(&mut events);
        }
    });
}

#[test]
fn document_decoders_stand_any_json() {
    bolero::check!().with_iterations(1500).for_each(|bytes: &[u8]| {
        error_body::decode(Dialect::OpenaiChat, 502, None, bytes);
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) else {
            return;
        };
        for dialect in chat::DIALECTS {
            let mut ledger = Ledger::new(Party::Adapter);
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

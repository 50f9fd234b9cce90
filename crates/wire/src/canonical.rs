//! The canonical stream: one event per line.

use ir::{Event, Ledger};

use crate::stream::{DecodeFrame, EncodeEvent, truncated, undecodable, write_line};

#[derive(Debug, Default)]
pub(crate) struct StreamDecoder {
    done: bool,
}

impl DecodeFrame for StreamDecoder {
    fn frame(&mut self, data: &str, out: &mut Vec<Event>) {
        match serde_json::from_str::<Event>(data) {
            Ok(event) => {
                self.done |= matches!(event, Event::Finish { .. } | Event::Error { .. });
                out.push(event);
            }
            Err(why) => out.push(undecodable(ir::Dialect::Canonical, &why)),
        }
    }

    fn end(&mut self, out: &mut Vec<Event>) {
        if !self.done {
            out.push(truncated());
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct StreamEncoder;

impl EncodeEvent for StreamEncoder {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>, _: &mut Ledger) {
        if let Ok(value) = serde_json::to_value(event) {
            write_line(out, &value);
        }
    }

    fn end(&mut self, _: &mut Vec<u8>) {}
}

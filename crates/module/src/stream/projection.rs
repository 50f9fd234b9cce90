//! Converts a model's text to numbered chunks. At any moment the chunks so far fold to
//! [`Projector::partial_data`], and after [`Projector::finish`] exactly to the final data, including the
//! order of keys. Strings grow by deltas; other scalars and empty containers are sent as snapshots; other
//! containers are implied by their content. There is no clock here: the engine calls
//! [`Projector::flush_idle`] when the text pauses.

use serde_json::{Map, Value};

use super::chunk::{Checkpoint, Chunk};
use super::digest::FieldDigest;
use super::field;
use super::json::{JsonError, JsonEvent, ReplyReader};
use super::partial_value::{PartialValue, PartialView};
use super::strict_eq::same_map;
use crate::limits;
use crate::manifest::{ChunkType, Response};

/// A module's chunk settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProjectorOptions {
    pub chunk_type: ChunkType,
    /// Bytes of text that are buffered before they are sent; 0 sends every piece.
    pub buffer_bytes: usize,
}

impl From<&Response> for ProjectorOptions {
    fn from(response: &Response) -> Self {
        Self {
            chunk_type: response.chunk_type,
            buffer_bytes: usize::try_from(response.buffer_size).unwrap_or(usize::MAX),
        }
    }
}

#[derive(Debug)]
pub struct Projector {
    reader: ReplyReader,
    projection: Projection,
    text_bytes: usize,
}

impl Projector {
    pub fn new(options: ProjectorOptions) -> Self {
        Self {
            reader: ReplyReader::new(),
            projection: Projection::new(options),
            text_bytes: 0,
        }
    }

    /// Continues a run whose chunks were sent by another projector. Call [`Self::restart`] first.
    pub fn after(options: ProjectorOptions, last_seq: u64) -> Self {
        let mut projector = Self::new(options);
        projector.projection.seq = last_seq;
        projector.projection.has_sent = last_seq > 0;
        projector
    }

    /// Processes the next piece of the model's text.
    pub fn push_text(&mut self, text: &str, out: &mut Vec<Chunk>) {
        self.text_bytes = self.text_bytes.saturating_add(text.len());
        if self.text_bytes > limits::REPLY_BYTES_MAX {
            return;
        }
        let projection = &mut self.projection;
        self.reader
            .push_str(text, &mut |event| projection.take(event, out));
        projection.send_due(text.len(), out);
    }

    /// Sends buffered text because no text has arrived for a while.
    pub fn flush_idle(&mut self, out: &mut Vec<Chunk>) {
        self.projection.flush(out);
    }

    /// Restarts the answer for another attempt: one chunk clears the data, if any was sent. Numbering
    /// continues.
    pub fn restart(&mut self, out: &mut Vec<Chunk>) {
        self.reader = ReplyReader::new();
        self.text_bytes = 0;
        self.projection.restart(out);
    }

    /// The answer is complete and valid. Sends buffered text and, where the data differs from the streamed
    /// data (it was wrapped, or selected from a longer reply), the data itself. The caller sends the final
    /// chunk.
    pub fn finish(&mut self, data: &Map<String, Value>, out: &mut Vec<Chunk>) {
        self.projection.finish(data, out);
    }

    /// The data that all chunks so far fold to.
    pub fn partial_data(&self) -> Map<String, Value> {
        self.projection.sent_data()
    }

    /// Number of the last chunk; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.projection.seq
    }

    /// The checkpoint of the last chunk, if that was a delta.
    pub fn last_checkpoint(&self) -> Option<&Checkpoint> {
        self.projection.checkpoint.as_ref()
    }

    /// The syntax error in a document that had begun as JSON. Nothing is streamed after it.
    pub fn error(&self) -> Option<JsonError> {
        self.reader.error()
    }
}

#[derive(Debug)]
struct Projection {
    options: ProjectorOptions,
    seq: u64,
    checkpoint: Option<Checkpoint>,
    /// Open containers around the current event in the document.
    depth: usize,
    shape: Option<AnswerShape>,
    /// The next value at the top level of an envelope is its data.
    at_data: bool,
    partial: PartialValue,
    text: SentText,
    /// The reader has data that a new attempt must clear.
    has_sent: bool,
    /// In snapshot mode: the data last sent, and the bytes received since.
    snapshot: Map<String, Value>,
    snapshot_bytes: usize,
    fresh_bytes: usize,
    changed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerShape {
    Envelope,
    Bare,
}

/// The sent part of the current string.
#[derive(Debug, Default)]
struct SentText {
    bytes: usize,
    /// The string exists for the reader.
    opened: bool,
    /// The key occurred before; the first chunk must replace the old value.
    replaces: bool,
    digest: FieldDigest,
}

impl Projection {
    fn new(options: ProjectorOptions) -> Self {
        Self {
            options,
            seq: 0,
            checkpoint: None,
            depth: 0,
            shape: None,
            at_data: false,
            partial: PartialValue::default(),
            text: SentText::default(),
            has_sent: false,
            snapshot: Map::new(),
            snapshot_bytes: 0,
            fresh_bytes: 0,
            changed: false,
        }
    }

    fn take(&mut self, event: JsonEvent<'_>, out: &mut Vec<Chunk>) {
        match event {
            JsonEvent::ObjectStart => {
                self.depth += 1;
                if self.partial.is_open() {
                    self.open(Value::Object(Map::new()), out);
                } else if self.at_data && self.depth == 2 {
                    self.begin(out);
                }
            }
            JsonEvent::ArrayStart => {
                self.depth += 1;
                if self.partial.is_open() {
                    self.open(Value::Array(Vec::new()), out);
                }
            }
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => {
                self.depth = self.depth.saturating_sub(1);
                if self.partial.is_open() {
                    self.close(out);
                }
            }
            JsonEvent::Key(key) => self.key(key, out),
            _ if !self.partial.is_open() => {}
            JsonEvent::TextDelta(text) => self.append(text),
            JsonEvent::TextEnd => self.end_text(out),
            JsonEvent::Number(number) => self.put(Value::Number(number), out),
            JsonEvent::Bool(value) => self.put(Value::Bool(value), out),
            JsonEvent::Null => self.put(Value::Null, out),
        }
    }

    fn key(&mut self, key: &str, out: &mut Vec<Chunk>) {
        if self.partial.is_open() {
            return self.partial.key(key);
        }
        if self.depth != 1 {
            return;
        }
        let shape = *self.shape.get_or_insert(match key {
            "ok" | "meta" | "data" | "error" => AnswerShape::Envelope,
            _ => AnswerShape::Bare,
        });
        if shape == AnswerShape::Envelope {
            self.at_data = key == field::ROOT;
        } else {
            self.begin(out);
            self.partial.key(key);
        }
    }

    /// Starts the data, possibly again because its key occurs twice.
    fn begin(&mut self, out: &mut Vec<Chunk>) {
        if self.options.chunk_type == ChunkType::Delta && !self.sent_data().is_empty() {
            self.send_snapshot(field::ROOT, Value::Object(Map::new()), out);
        }
        self.partial.begin();
        self.text = SentText::default();
        self.changed = true;
    }

    fn open(&mut self, empty: Value, out: &mut Vec<Chunk>) {
        let replaces = self.partial.locate();
        self.changed = true;
        let announced = replaces && self.options.chunk_type == ChunkType::Delta;
        if announced {
            self.send_field_snapshot(empty.clone(), out);
        }
        self.partial.open(empty, announced);
    }

    fn close(&mut self, out: &mut Vec<Chunk>) {
        if let Some(empty) = self.partial.close()
            && self.options.chunk_type == ChunkType::Delta
        {
            self.send_field_snapshot(empty, out);
        }
    }

    fn put(&mut self, value: Value, out: &mut Vec<Chunk>) {
        self.partial.locate();
        self.changed = true;
        if self.options.chunk_type == ChunkType::Delta {
            self.send_field_snapshot(value.clone(), out);
        }
        self.partial.put(value);
    }

    fn append(&mut self, text: &str) {
        self.begin_text();
        self.partial.append(text);
    }

    fn begin_text(&mut self) {
        if !self.partial.in_text() {
            self.text = SentText {
                replaces: self.partial.locate(),
                ..SentText::default()
            };
        }
        self.changed = true;
    }

    fn end_text(&mut self, out: &mut Vec<Chunk>) {
        self.begin_text();
        if self.options.chunk_type == ChunkType::Delta {
            let rest = self.partial.text().len() > self.text.bytes;
            if rest || !self.text.opened {
                self.send_text(out);
            }
        }
        self.partial.end_text();
        self.text = SentText::default();
    }

    /// After each piece of text: sends what is due.
    fn send_due(&mut self, piece_bytes: usize, out: &mut Vec<Chunk>) {
        match self.options.chunk_type {
            ChunkType::Delta => {
                let waiting = self.partial.text().len() - self.text.bytes;
                // The first text of a string is sent at once.
                let first = self.text.bytes == 0;
                if waiting > 0 && (first || waiting >= self.options.buffer_bytes) {
                    self.send_text(out);
                }
            }
            ChunkType::Snapshot => {
                self.fresh_bytes += piece_bytes;
                // Each snapshot repeats all earlier data. Waiting for a share of its size keeps the sum of
                // all snapshots within a constant factor of the text; pauses still flush.
                let share = self.snapshot_bytes / limits::SNAPSHOT_SHARE;
                if self.changed && self.fresh_bytes >= self.options.buffer_bytes.max(share) {
                    self.send_full_snapshot(out);
                }
            }
        }
    }

    fn flush(&mut self, out: &mut Vec<Chunk>) {
        match self.options.chunk_type {
            ChunkType::Delta if self.partial.text().len() > self.text.bytes => self.send_text(out),
            ChunkType::Snapshot if self.changed => self.send_full_snapshot(out),
            ChunkType::Delta | ChunkType::Snapshot => {}
        }
    }

    fn restart(&mut self, out: &mut Vec<Chunk>) {
        let has_sent = std::mem::take(&mut self.has_sent);
        let seq = self.seq;
        let checkpoint = self.checkpoint.take();
        *self = Self::new(self.options);
        self.seq = seq;
        self.checkpoint = checkpoint;
        if has_sent {
            self.send_snapshot(field::ROOT, Value::Object(Map::new()), out);
            self.has_sent = false;
        }
    }

    fn finish(&mut self, data: &Map<String, Value>, out: &mut Vec<Chunk>) {
        if self.options.chunk_type == ChunkType::Delta {
            self.flush(out);
        }
        let is_equal = match (self.options.chunk_type, self.partial.complete()) {
            (ChunkType::Delta, Some(whole)) => same_map(whole, data),
            _ => same_map(&self.sent_data(), data),
        };
        if !is_equal {
            self.send_snapshot(field::ROOT, Value::Object(data.clone()), out);
            self.partial.replace(data.clone());
            self.text = SentText::default();
            self.snapshot.clone_from(data);
        }
        self.changed = false;
    }

    fn sent_data(&self) -> Map<String, Value> {
        match self.options.chunk_type {
            ChunkType::Snapshot => self.snapshot.clone(),
            ChunkType::Delta => {
                let text = self.text.opened.then_some(self.text.bytes);
                self.partial.view(PartialView::Announced { text })
            }
        }
    }

    fn send_text(&mut self, out: &mut Vec<Chunk>) {
        let text = self.partial.text();
        let fresh = text.get(self.text.bytes..).unwrap_or_default();
        self.text.digest.update(fresh);
        self.text.bytes = text.len();
        self.text.opened = true;
        if std::mem::take(&mut self.text.replaces) {
            return self.send_field_snapshot(Value::from(text), out);
        }
        let checkpoint = self.text.digest.checkpoint();
        self.seq += 1;
        self.has_sent = true;
        self.checkpoint = Some(checkpoint.clone());
        out.push(Chunk::Delta {
            seq: self.seq,
            field: String::from(self.partial.field()),
            delta: String::from(fresh),
            checkpoint: Some(checkpoint),
        });
    }

    fn send_full_snapshot(&mut self, out: &mut Vec<Chunk>) {
        self.changed = false;
        self.fresh_bytes = 0;
        let data = self.partial.view(PartialView::All);
        self.snapshot_bytes = super::fold::weigh_map(&data, limits::NESTING_MAX);
        self.snapshot.clone_from(&data);
        self.send_snapshot(field::ROOT, Value::Object(data), out);
    }

    fn send_field_snapshot(&mut self, data: Value, out: &mut Vec<Chunk>) {
        let field = String::from(self.partial.field());
        self.send_snapshot(&field, data, out);
    }

    fn send_snapshot(&mut self, field: &str, data: Value, out: &mut Vec<Chunk>) {
        self.seq += 1;
        self.has_sent = true;
        self.checkpoint = None;
        out.push(Chunk::Snapshot {
            seq: self.seq,
            field: String::from(field),
            data,
        });
    }
}

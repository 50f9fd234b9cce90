//! A model's text becomes numbered chunks. At any moment the chunks so far fold to
//! [`Projector::partial_data`], and after [`Projector::finish`] to the final data exactly, the order of
//! keys included. Strings grow by deltas; other scalars and empty containers appear whole, as snapshots;
//! containers appear by what is in them. It knows no clock: the engine says when the text has paused.

use serde_json::{Map, Value};

use super::chunk::{Checkpoint, Chunk};
use super::digest::FieldDigest;
use super::field;
use super::partial_value::{PartialValue, PartialView};
use super::json::{JsonError, JsonEvent, ReplyReader};
use super::strict_eq::same_map;
use crate::limits;
use crate::manifest::{ChunkType, Response};

/// How a module wants its chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProjectorOptions {
    pub chunk_type: ChunkType,
    /// Bytes of text that gather before they are sent; 0 sends with every piece.
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

    /// Goes on after a run whose chunks were sent by another projector. Call [`Self::restart`] first.
    pub fn after(options: ProjectorOptions, last_seq: u64) -> Self {
        let mut projector = Self::new(options);
        projector.projection.seq = last_seq;
        projector.projection.told = last_seq > 0;
        projector
    }

    /// Takes the next piece of the model's text.
    pub fn push_text(&mut self, text: &str, out: &mut Vec<Chunk>) {
        self.text_bytes = self.text_bytes.saturating_add(text.len());
        if self.text_bytes > limits::REPLY_BYTES_MAX {
            return;
        }
        let projection = &mut self.projection;
        self.reader
            .push_str(text, &mut |event| projection.take(event, out));
        projection.settle(text.len(), out);
    }

    /// Sends what is held back, because no text has come for a while.
    pub fn flush_idle(&mut self, out: &mut Vec<Chunk>) {
        self.projection.flush(out);
    }

    /// Another attempt writes the answer anew: what was sent is taken back in one chunk, if anything
    /// was. The numbers go on.
    pub fn restart(&mut self, out: &mut Vec<Chunk>) {
        self.reader = ReplyReader::new();
        self.text_bytes = 0;
        self.projection.restart(out);
    }

    /// The answer is complete and valid. Sends what is held back and, where the data is not what was
    /// streamed (it was wrapped, or chosen from a longer reply), the data itself. The final chunk is
    /// the caller's to send.
    pub fn finish(&mut self, data: &Map<String, Value>, out: &mut Vec<Chunk>) {
        self.projection.finish(data, out);
    }

    /// What all chunks so far add up to.
    pub fn partial_data(&self) -> Map<String, Value> {
        self.projection.standing()
    }

    /// Number of the last chunk; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.projection.seq
    }

    /// The checkpoint of the last chunk, if that was a delta.
    pub fn last_checkpoint(&self) -> Option<&Checkpoint> {
        self.projection.checkpoint.as_ref()
    }

    /// What made the text cease to be JSON after it had begun as such. Nothing more is streamed then.
    pub fn error(&self) -> Option<JsonError> {
        self.reader.error()
    }
}

#[derive(Debug)]
struct Projection {
    options: ProjectorOptions,
    seq: u64,
    checkpoint: Option<Checkpoint>,
    /// Containers around the event at hand, in the document.
    depth: usize,
    shape: Option<AnswerShape>,
    /// The value that follows at the top of an envelope is its data.
    at_data: bool,
    growth: PartialValue,
    text: SentText,
    /// Something stands on the other side that a new attempt must take back.
    told: bool,
    /// In snapshot mode: what was sent last, and how much has come since.
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

/// What was sent of the string at hand.
#[derive(Debug, Default)]
struct SentText {
    bytes: usize,
    /// The string exists on the other side.
    opened: bool,
    /// The key stood before; the first chunk must replace the old value.
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
            growth: PartialValue::default(),
            text: SentText::default(),
            told: false,
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
                if self.growth.is_open() {
                    self.open(Value::Object(Map::new()), out);
                } else if self.at_data && self.depth == 2 {
                    self.begin(out);
                }
            }
            JsonEvent::ArrayStart => {
                self.depth += 1;
                if self.growth.is_open() {
                    self.open(Value::Array(Vec::new()), out);
                }
            }
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => {
                self.depth = self.depth.saturating_sub(1);
                if self.growth.is_open() {
                    self.close(out);
                }
            }
            JsonEvent::Key(key) => self.key(key, out),
            _ if !self.growth.is_open() => {}
            JsonEvent::TextDelta(text) => self.append(text),
            JsonEvent::TextEnd => self.end_text(out),
            JsonEvent::Number(number) => self.put(Value::Number(number), out),
            JsonEvent::Bool(value) => self.put(Value::Bool(value), out),
            JsonEvent::Null => self.put(Value::Null, out),
        }
    }

    fn key(&mut self, key: &str, out: &mut Vec<Chunk>) {
        if self.growth.is_open() {
            return self.growth.key(key);
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
            self.growth.key(key);
        }
    }

    /// The data begins, perhaps once more because its key stands twice.
    fn begin(&mut self, out: &mut Vec<Chunk>) {
        if self.options.chunk_type == ChunkType::Delta && !self.standing().is_empty() {
            self.send_snapshot(field::ROOT, Value::Object(Map::new()), out);
        }
        self.growth.begin();
        self.text = SentText::default();
        self.changed = true;
    }

    fn open(&mut self, empty: Value, out: &mut Vec<Chunk>) {
        let replaces = self.growth.locate();
        self.changed = true;
        let announced = replaces && self.options.chunk_type == ChunkType::Delta;
        if announced {
            self.send_snapshot_here(empty.clone(), out);
        }
        self.growth.open(empty, announced);
    }

    fn close(&mut self, out: &mut Vec<Chunk>) {
        if let Some(empty) = self.growth.close()
            && self.options.chunk_type == ChunkType::Delta
        {
            self.send_snapshot_here(empty, out);
        }
    }

    fn put(&mut self, value: Value, out: &mut Vec<Chunk>) {
        self.growth.locate();
        self.changed = true;
        if self.options.chunk_type == ChunkType::Delta {
            self.send_snapshot_here(value.clone(), out);
        }
        self.growth.put(value);
    }

    fn append(&mut self, text: &str) {
        self.begin_text();
        self.growth.append(text);
    }

    fn begin_text(&mut self) {
        if !self.growth.in_text() {
            self.text = SentText {
                replaces: self.growth.locate(),
                ..SentText::default()
            };
        }
        self.changed = true;
    }

    fn end_text(&mut self, out: &mut Vec<Chunk>) {
        self.begin_text();
        if self.options.chunk_type == ChunkType::Delta {
            let rest = self.growth.text().len() > self.text.bytes;
            if rest || !self.text.opened {
                self.send_text(out);
            }
        }
        self.growth.end_text();
        self.text = SentText::default();
    }

    /// After each piece of text: sends what need not wait.
    fn settle(&mut self, piece_bytes: usize, out: &mut Vec<Chunk>) {
        match self.options.chunk_type {
            ChunkType::Delta => {
                let waiting = self.growth.text().len() - self.text.bytes;
                // The first words of a text wait for no others: somebody waits for them.
                let first = self.text.bytes == 0;
                if waiting > 0 && (first || waiting >= self.options.buffer_bytes) {
                    self.send_text(out);
                }
            }
            ChunkType::Snapshot => {
                self.fresh_bytes += piece_bytes;
                // Each snapshot repeats all that came before. Waiting for a share of that keeps the sum
                // of all snapshots within a constant factor of the text; pauses still flush.
                let share = self.snapshot_bytes / limits::SNAPSHOT_SHARE;
                if self.changed && self.fresh_bytes >= self.options.buffer_bytes.max(share) {
                    self.send_whole(out);
                }
            }
        }
    }

    fn flush(&mut self, out: &mut Vec<Chunk>) {
        match self.options.chunk_type {
            ChunkType::Delta if self.growth.text().len() > self.text.bytes => self.send_text(out),
            ChunkType::Snapshot if self.changed => self.send_whole(out),
            ChunkType::Delta | ChunkType::Snapshot => {}
        }
    }

    fn restart(&mut self, out: &mut Vec<Chunk>) {
        let told = std::mem::take(&mut self.told);
        let seq = self.seq;
        let checkpoint = self.checkpoint.take();
        *self = Self::new(self.options);
        self.seq = seq;
        self.checkpoint = checkpoint;
        if told {
            self.send_snapshot(field::ROOT, Value::Object(Map::new()), out);
            self.told = false;
        }
    }

    fn finish(&mut self, data: &Map<String, Value>, out: &mut Vec<Chunk>) {
        if self.options.chunk_type == ChunkType::Delta {
            self.flush(out);
        }
        let right = match (self.options.chunk_type, self.growth.complete()) {
            (ChunkType::Delta, Some(whole)) => same_map(whole, data),
            _ => same_map(&self.standing(), data),
        };
        if !right {
            self.send_snapshot(field::ROOT, Value::Object(data.clone()), out);
            self.growth.replace(data.clone());
            self.text = SentText::default();
            self.snapshot.clone_from(data);
        }
        self.changed = false;
    }

    fn standing(&self) -> Map<String, Value> {
        match self.options.chunk_type {
            ChunkType::Snapshot => self.snapshot.clone(),
            ChunkType::Delta => {
                let text = self.text.opened.then_some(self.text.bytes);
                self.growth.view(PartialView::Announced { text })
            }
        }
    }

    fn send_text(&mut self, out: &mut Vec<Chunk>) {
        let text = self.growth.text();
        let fresh = text.get(self.text.bytes..).unwrap_or_default();
        self.text.digest.update(fresh);
        self.text.bytes = text.len();
        self.text.opened = true;
        if std::mem::take(&mut self.text.replaces) {
            return self.send_snapshot_here(Value::from(text), out);
        }
        let checkpoint = self.text.digest.checkpoint();
        self.seq += 1;
        self.told = true;
        self.checkpoint = Some(checkpoint.clone());
        out.push(Chunk::Delta {
            seq: self.seq,
            field: String::from(self.growth.field()),
            delta: String::from(fresh),
            checkpoint: Some(checkpoint),
        });
    }

    fn send_whole(&mut self, out: &mut Vec<Chunk>) {
        self.changed = false;
        self.fresh_bytes = 0;
        let data = self.growth.view(PartialView::All);
        self.snapshot_bytes = super::fold::weigh_map(&data, limits::NESTING_MAX);
        self.snapshot.clone_from(&data);
        self.send_snapshot(field::ROOT, Value::Object(data), out);
    }

    fn send_snapshot_here(&mut self, data: Value, out: &mut Vec<Chunk>) {
        let field = String::from(self.growth.field());
        self.send_snapshot(&field, data, out);
    }

    fn send_snapshot(&mut self, field: &str, data: Value, out: &mut Vec<Chunk>) {
        self.seq += 1;
        self.told = true;
        self.checkpoint = None;
        out.push(Chunk::Snapshot {
            seq: self.seq,
            field: String::from(field),
            data,
        });
    }
}

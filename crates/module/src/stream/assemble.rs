//! Folds a chunk sequence into an envelope. Any sequence is accepted: protocol errors are recorded as
//! violations, folding continues, and an envelope is always returned. The final chunk takes precedence over
//! the folded data; a stream without a terminal chunk becomes a failure with the data needed to resume.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Map, Value};

use super::chunk::{Checkpoint, Chunk, META_ANNOTATION, Recovery, widen_error};
use super::digest::FieldDigest;
use super::field::{self, PathStep};
use super::fold::{self, ApplyError};
use super::violation::Violation;
use crate::code::Code;
use crate::envelope::{ErrorBody, Meta, Profile, check_structure};
use crate::limits;

/// The result of folding a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    /// Always an envelope: of the final chunk, of the error chunk, or E2010 for a stream without a terminal
    /// chunk.
    pub envelope: Value,
    pub session_id: Option<String>,
    /// Number of the last delta or snapshot; 0 if there was none.
    pub last_seq: u64,
    /// Whether a final or an error chunk ended the stream.
    pub ended: bool,
    pub violations: Vec<Violation>,
    /// Violations beyond the limit of the list.
    pub violations_dropped: usize,
}

impl Assembled {
    pub fn is_ok(&self) -> bool {
        self.envelope.get("ok") == Some(&Value::Bool(true))
    }
}

/// Accepts chunks in the order of their arrival.
#[derive(Debug, Default)]
pub struct Assembler {
    session_id: Option<String>,
    data: Map<String, Value>,
    /// Approximate memory size of `data`; an upper bound.
    weight: usize,
    last_seq: u64,
    last_checkpoint: Option<Checkpoint>,
    /// Fingerprints of the latest numbered chunks, the last one being that of `last_seq`.
    fingerprints: VecDeque<u64>,
    /// Set after a repeated meta chunk: sequence numbers may restart below the last one.
    resumed: bool,
    /// Digests by field path, so that interleaved fields are not rehashed from the start.
    digests: BTreeMap<String, FieldDigest>,
    /// The field of the last delta with its parsed steps: consecutive deltas usually share a field.
    last_field: (String, Vec<PathStep>),
    started: bool,
    end: Option<Chunk>,
    violations: Vec<Violation>,
    violations_dropped: usize,
    line: Option<usize>,
}

impl Assembler {
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies one chunk. A violation is returned and also recorded for [`Self::finish`]; later chunks are
    /// still accepted.
    pub fn push(&mut self, chunk: Chunk) -> Result<(), Violation> {
        let result = self.take(chunk);
        if let Err(violation) = &result {
            self.report(violation.clone());
        }
        result
    }

    /// The data folded so far.
    pub fn data(&self) -> &Map<String, Value> {
        &self.data
    }

    /// Records a violation found by the caller, for example a line that is not a chunk.
    pub(super) fn report(&mut self, mut violation: Violation) {
        violation.line = self.line;
        if self.violations.len() < limits::DIAGNOSTICS_MAX {
            self.violations.push(violation);
        } else {
            self.violations_dropped += 1;
        }
    }

    /// Sets the line number of the chunks that follow.
    pub(super) fn at_line(&mut self, line: usize) {
        self.line = Some(line);
    }

    pub fn finish(mut self) -> Assembled {
        let ended = self.end.is_some();
        self.line = None;
        let envelope = self.end.take().and_then(envelope_of);
        let envelope = envelope.unwrap_or_else(|| self.interrupted());
        Assembled {
            envelope,
            session_id: self.session_id,
            last_seq: self.last_seq,
            ended,
            violations: self.violations,
            violations_dropped: self.violations_dropped,
        }
    }

    fn take(&mut self, chunk: Chunk) -> Result<(), Violation> {
        if let Chunk::Meta {
            session_id,
            resume_from_seq,
            ..
        } = chunk
        {
            return self.begin(session_id, resume_from_seq);
        }
        if self.end.is_some() {
            return Err(protocol_error("", "no chunk may follow the terminal chunk"));
        }
        let first = !std::mem::replace(&mut self.started, true);
        if first && !matches!(chunk, Chunk::Error { .. }) {
            self.report(protocol_error("", "a stream must begin with a meta chunk"));
        }
        match chunk {
            Chunk::Meta { .. } | Chunk::Progress(_) => Ok(()),
            Chunk::Delta { .. } | Chunk::Snapshot { .. } => self.apply(chunk),
            Chunk::Final { .. } | Chunk::Error { .. } => self.end(chunk),
        }
    }

    fn begin(&mut self, session_id: String, resume_from_seq: Option<u64>) -> Result<(), Violation> {
        let again = std::mem::replace(&mut self.started, true);
        let known = self.session_id.replace(session_id);
        self.end = None;
        if again && known.is_some() && known != self.session_id {
            // The run to resume no longer existed and was replaced by another one.
            self.reset();
            return Ok(());
        }
        self.resumed = again;
        match resume_from_seq {
            Some(seq) if seq > self.last_seq + 1 => {
                let message = format!(
                    "the stream resumes at {seq}, but chunk {} was last",
                    self.last_seq
                );
                // Chunks lost in between are not recovered; numbering continues from here.
                self.last_seq = seq - 1;
                self.fingerprints.clear();
                Err(Violation::error(Code::E2010, "/resume_from_seq", message))
            }
            _ => Ok(()),
        }
    }

    fn reset(&mut self) {
        self.data.clear();
        self.weight = 0;
        self.digests.clear();
        self.fingerprints.clear();
        self.last_seq = 0;
        self.last_checkpoint = None;
        self.resumed = false;
    }

    fn apply(&mut self, chunk: Chunk) -> Result<(), Violation> {
        let seq = chunk.seq().unwrap_or_default();
        if self.resumed && seq == 1 {
            // A full replay and a restarted stream are handled alike.
            self.reset();
        }
        let print = fingerprint(&chunk);
        if seq <= self.last_seq {
            return self.check_repeated(seq, print);
        }
        self.resumed = false;
        let expected = self.last_seq + 1;
        self.last_seq = seq;
        if seq > expected {
            let message = format!("seq {seq} follows seq {}: chunks are missing", expected - 1);
            self.report(Violation::error(Code::E2010, "/chunk/seq", message));
            self.fingerprints.clear();
        }
        if self.fingerprints.len() == limits::RESENT_CHUNKS_MAX {
            self.fingerprints.pop_front();
        }
        self.fingerprints.push_back(print);
        self.last_checkpoint = None;
        match chunk {
            Chunk::Delta {
                seq: _,
                field,
                delta,
                checkpoint,
            } => self.append(field, &delta, checkpoint),
            Chunk::Snapshot { seq: _, field, data } => self.replace(&field, data),
            _ => Ok(()),
        }
    }

    /// A resumed stream may repeat earlier chunks if their content is the same.
    fn check_repeated(&self, seq: u64, print: u64) -> Result<(), Violation> {
        let back = usize::try_from(self.last_seq - seq).unwrap_or(usize::MAX);
        let known = self.fingerprints.iter().rev().nth(back);
        if !self.resumed {
            let message = format!("seq {seq} follows seq {}", self.last_seq);
            return Err(protocol_error("/chunk/seq", &message));
        }
        match known {
            Some(known) if *known != print => {
                let message = format!("seq {seq} was repeated with different content");
                Err(Violation::error(Code::E4014, "/chunk/seq", message))
            }
            _ => Ok(()),
        }
    }

    fn append(
        &mut self,
        field: String,
        delta: &str,
        checkpoint: Option<Checkpoint>,
    ) -> Result<(), Violation> {
        if self.last_field.0 != field || self.last_field.1.is_empty() {
            let steps = field::parse(&field).ok_or_else(|| no_field(&field))?;
            self.last_field = (field, steps);
        }
        self.make_room(delta.len())?;
        let field = &self.last_field.0;
        let text = fold::append(&mut self.data, &self.last_field.1, delta)
            .map_err(|refusal| refused(refusal, field))?;
        let digest = match self.digests.get_mut(field) {
            Some(digest) => {
                digest.update(delta);
                digest
            }
            None => self
                .digests
                .entry(field.clone())
                .or_insert_with(|| FieldDigest::of(text)),
        };
        let Some(checkpoint) = checkpoint else {
            return Ok(());
        };
        let actual = digest.checkpoint();
        if actual != checkpoint {
            let message = format!(
                "checkpoint {}/{} does not match {field}, whose state is {}/{}",
                checkpoint.offset, checkpoint.hash, actual.offset, actual.hash
            );
            return Err(Violation::error(Code::E4014, "/chunk/checkpoint", message));
        }
        self.last_checkpoint = Some(checkpoint);
        Ok(())
    }

    fn replace(&mut self, field: &str, value: Value) -> Result<(), Violation> {
        let steps = field::parse(field).ok_or_else(|| no_field(field))?;
        let weight = fold::weight(&value, limits::NESTING_MAX);
        if steps.is_empty() {
            self.weight = 0;
        }
        self.make_room(weight)?;
        fold::replace(&mut self.data, &steps, value).map_err(|refusal| refused(refusal, field))?;
        let below = |other: &str| {
            other
                .strip_prefix(field)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let range = String::from(field)..;
        let stale: Vec<String> = self
            .digests
            .range(range)
            .map(|(other, _)| other)
            .take_while(|other| other.starts_with(field))
            .filter(|other| below(other))
            .cloned()
            .collect();
        for other in stale {
            self.digests.remove(&other);
        }
        Ok(())
    }

    /// Adds the size of a chunk to the total and refuses data above the limit.
    fn make_room(&mut self, bytes: usize) -> Result<(), Violation> {
        if self.weight.saturating_add(bytes) > limits::REPLY_BYTES_MAX {
            // The running total ignores replaced values; recompute it before refusing.
            self.weight = fold::weigh_map(&self.data, limits::NESTING_MAX);
        }
        let weight = self.weight.saturating_add(bytes);
        if weight > limits::REPLY_BYTES_MAX {
            let message = format!("the data exceeds {} bytes", limits::REPLY_BYTES_MAX);
            return Err(Violation::error(Code::E1005, "/chunk", message));
        }
        self.weight = weight;
        Ok(())
    }

    fn end(&mut self, chunk: Chunk) -> Result<(), Violation> {
        let mut differs = None;
        match &chunk {
            Chunk::Final { data, .. } if self.last_seq > 0 && *data != self.data => {
                let place = difference(data, &self.data);
                let message = format!("the final data differs from the folded chunks, first at {place}");
                differs = Some(Violation::warning(Code::E3006, &place, message));
            }
            Chunk::Error {
                session_id: Some(id), ..
            } => {
                self.session_id.get_or_insert_with(|| id.clone());
            }
            _ => {}
        }
        self.end = Some(chunk);
        match differs {
            // The final chunk is authoritative, so a difference is a warning and not an error.
            Some(warning) => {
                self.report(warning);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn interrupted(&mut self) -> Value {
        let mut error = ErrorBody::new(Code::E2010, "the stream was interrupted before its end");
        error.recoverable = self.session_id.is_some();
        let recovery = Recovery::after(self.last_seq, self.last_checkpoint.take());
        let recovery = serde_json::to_value(recovery).unwrap_or_default();
        error.more.insert(String::from("recovery"), recovery);
        let partial = (self.last_seq > 0).then(|| std::mem::take(&mut self.data));
        failure(error.into_map(), partial, Map::new())
    }
}

/// The envelope of a terminal chunk; `None` for any other chunk.
pub fn envelope_of(last: Chunk) -> Option<Value> {
    match last {
        Chunk::Final {
            meta,
            data,
            usage,
            annotations,
        } => Some(success(meta, data, usage, annotations)),
        Chunk::Error {
            session_id: _,
            error,
            partial_data,
            annotations,
        } => Some(failure(widen_error(error), partial_data, annotations)),
        _ => None,
    }
}

fn success(
    meta: Map<String, Value>,
    data: Map<String, Value>,
    usage: Option<Value>,
    annotations: Map<String, Value>,
) -> Value {
    let mut map = Map::new();
    map.insert(String::from("ok"), Value::Bool(true));
    map.insert(String::from("meta"), Value::Object(meta));
    map.insert(String::from("data"), Value::Object(data));
    if let Some(usage) = usage {
        map.insert(String::from("_usage"), usage);
    }
    map.extend(annotations);
    Value::Object(map)
}

/// Meta is optional in an error chunk and required in a failure envelope.
fn failure(
    error: Map<String, Value>,
    partial_data: Option<Map<String, Value>>,
    mut annotations: Map<String, Value>,
) -> Value {
    let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
    let default_meta = Value::Object(Meta::of_failure(message).into_map());
    let given = annotations.shift_remove(META_ANNOTATION);
    let is_given = given.is_some();
    let mut map = Map::new();
    map.insert(String::from("ok"), Value::Bool(false));
    map.insert(
        String::from("meta"),
        given.unwrap_or_else(|| default_meta.clone()),
    );
    map.insert(String::from("error"), Value::Object(error));
    if let Some(partial) = partial_data {
        map.insert(String::from("partial_data"), Value::Object(partial));
    }
    map.extend(annotations);
    let mut envelope = Value::Object(map);
    // The chunk may come from another runtime, so its meta is used only if it is valid.
    if is_given
        && !check_structure(&envelope, Profile::Cognitive).is_empty()
        && let Value::Object(map) = &mut envelope
    {
        map.insert(String::from("meta"), default_meta);
    }
    envelope
}

/// The first difference between two data objects, as a pointer into the final chunk.
fn difference(last: &Map<String, Value>, folded: &Map<String, Value>) -> String {
    let differing = last
        .iter()
        .find(|(key, value)| folded.get(*key) != Some(*value))
        .map(|(key, _)| key)
        .or_else(|| folded.keys().find(|key| !last.contains_key(*key)));
    let key = differing.map(|key| key.replace('~', "~0").replace('/', "~1"));
    format!("/data/{}", key.unwrap_or_default())
}

fn fingerprint(chunk: &Chunk) -> u64 {
    let mut hasher = DefaultHasher::new();
    match chunk {
        Chunk::Delta { field, delta, .. } => ("delta", field, delta).hash(&mut hasher),
        Chunk::Snapshot { field, data, .. } => ("snapshot", field, data).hash(&mut hasher),
        Chunk::Meta { .. } | Chunk::Progress(_) | Chunk::Final { .. } | Chunk::Error { .. } => {}
    }
    hasher.finish()
}

fn protocol_error(pointer: &str, message: &str) -> Violation {
    Violation::error(Code::E3006, pointer, message)
}

fn no_field(field: &str) -> Violation {
    let shown: String = field.chars().take(80).collect();
    let message = format!("`{shown}` is not a field path under data");
    Violation::error(Code::E1006, "/chunk/field", message)
}

fn refused(refusal: ApplyError, field: &str) -> Violation {
    let shown: String = field.chars().take(80).collect();
    let code = match refusal {
        ApplyError::BeyondEnd => Code::E1006,
        ApplyError::WrongKind | ApplyError::NotText | ApplyError::NotObject => Code::E1003,
        ApplyError::TooDeep => Code::E1005,
    };
    Violation::error(code, "/chunk/field", format!("{shown}: {refusal}"))
}

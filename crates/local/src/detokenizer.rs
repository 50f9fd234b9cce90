//! From the bytes of tokens to the text of an answer: characters that are split across tokens are
//! reassembled, and text that may be the beginning of a stop sequence is withheld until that is decided.

/// Incremental detokenizer with the text that is not yet emitted.
#[derive(Debug, Default)]
pub(crate) struct Detokenizer {
    stops: Vec<String>,
    /// Leading bytes of an incomplete character.
    partial: Vec<u8>,
    pending: String,
}

/// The result of a push.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Detokenized {
    Text(String),
    /// The last text, before a stop sequence.
    Stopped(String),
}

impl Detokenizer {
    pub(crate) fn new(stops: Vec<String>) -> Self {
        let stops = stops.into_iter().filter(|stop| !stop.is_empty()).collect();
        Self {
            stops,
            ..Self::default()
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Detokenized {
        self.partial.extend_from_slice(bytes);
        let text = whole_characters(&mut self.partial);
        self.pending.push_str(&text);
        let first = self.stops.iter().filter_map(|stop| self.pending.find(stop)).min();
        if let Some(at) = first {
            self.pending.truncate(at);
            self.partial.clear();
            return Detokenized::Stopped(std::mem::take(&mut self.pending));
        }
        let withheld = self.undecided();
        let rest = self.pending.split_off(self.pending.len() - withheld);
        Detokenized::Text(std::mem::replace(&mut self.pending, rest))
    }

    /// The remaining text. Bytes of an incomplete character are replaced.
    pub(crate) fn finish(&mut self) -> String {
        let partial = std::mem::take(&mut self.partial);
        let mut text = std::mem::take(&mut self.pending);
        text.push_str(&String::from_utf8_lossy(&partial));
        text
    }

    /// Length of the longest suffix of the text that a stop sequence could begin with.
    fn undecided(&self) -> usize {
        let ends = |stop: &String| {
            let starts = stop.char_indices().map(|(at, _)| at).skip(1);
            starts
                .filter(|at| stop.get(..*at).is_some_and(|head| self.pending.ends_with(head)))
                .max()
                .unwrap_or(0)
        };
        self.stops.iter().map(ends).max().unwrap_or(0)
    }
}

/// Removes the decodable prefix. Invalid bytes are replaced; an incomplete character remains.
fn whole_characters(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    loop {
        match std::str::from_utf8(bytes) {
            Ok(whole) => {
                text.push_str(whole);
                bytes.clear();
                return text;
            }
            Err(error) => {
                let valid = error.valid_up_to();
                text.push_str(&String::from_utf8_lossy(bytes.get(..valid).unwrap_or_default()));
                let Some(bad) = error.error_len() else {
                    bytes.drain(..valid);
                    return text;
                };
                bytes.drain(..valid + bad);
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }
}

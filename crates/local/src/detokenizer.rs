//! From the bytes of tokens to the text of an answer: characters that are split over tokens are put together,
//! and text that may be the beginning of a stop sequence is kept back until that is decided.

/// The text so far that nobody has seen yet.
#[derive(Debug, Default)]
pub(crate) struct Detokenizer {
    stops: Vec<String>,
    /// The beginning of a character whose other bytes have not come.
    torn: Vec<u8>,
    held: String,
}

/// What a piece brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Detokenized {
    Text(String),
    /// The last text, in front of a stop sequence.
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
        self.torn.extend_from_slice(bytes);
        let text = whole_characters(&mut self.torn);
        self.held.push_str(&text);
        let first = self.stops.iter().filter_map(|stop| self.held.find(stop)).min();
        if let Some(at) = first {
            self.held.truncate(at);
            self.torn.clear();
            return Detokenized::Stopped(std::mem::take(&mut self.held));
        }
        let kept = self.undecided();
        let rest = self.held.split_off(self.held.len() - kept);
        Detokenized::Text(std::mem::replace(&mut self.held, rest))
    }

    /// Everything that is left. A torn character can no longer become whole.
    pub(crate) fn finish(&mut self) -> String {
        let torn = std::mem::take(&mut self.torn);
        let mut text = std::mem::take(&mut self.held);
        text.push_str(&String::from_utf8_lossy(&torn));
        text
    }

    /// Length of the longest end of the text that a stop sequence could begin with.
    fn undecided(&self) -> usize {
        let ends = |stop: &String| {
            let starts = stop.char_indices().map(|(at, _)| at).skip(1);
            starts
                .filter(|at| stop.get(..*at).is_some_and(|head| self.held.ends_with(head)))
                .max()
                .unwrap_or(0)
        };
        self.stops.iter().map(ends).max().unwrap_or(0)
    }
}

/// Takes as much as is text. Bytes that can never become text are replaced; a character that is not complete
/// yet stays.
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

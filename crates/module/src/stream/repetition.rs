//! Detects a string of a growing JSON text that repeats itself: its last tokens are one short cycle. Tokens are
//! defined on the text, since back-ends cut their text anywhere: at most four letters or digits of a word, or
//! one other character that is not white space. The work is constant per token.

use crate::limits::{REPETITION_CYCLE_MAX, REPETITION_TOKENS};

/// Letters of one token.
const TOKEN_CHARS: u32 = 4;
/// Longest name of a field that is kept.
const NAME_CHARS_MAX: usize = 64;

/// Reads JSON text as it arrives, in pieces of any size.
#[derive(Clone, Debug)]
pub struct RepetitionDetector {
    place: TextPosition,
    /// The beginning of the current or last string, which may be the name of a field.
    string: String,
    /// The field that was named last.
    field: String,
    has_space: bool,
    /// The word under way: its characters, 32 bits each, and their number.
    word: u128,
    word_chars: u32,
    /// The latest tokens of the string, by number modulo the length.
    latest: [u128; REPETITION_CYCLE_MAX],
    /// Number of tokens of the string.
    count: usize,
    /// For each cycle length, less one: how many tokens in a row equal the token that many places before.
    equal: [usize; REPETITION_CYCLE_MAX],
    /// Number of tokens of all strings.
    total: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextPosition {
    Outside,
    /// After a string: a colon makes it the name of a field.
    AfterString,
    Inside,
    /// After a backslash.
    Escape,
}

impl Default for RepetitionDetector {
    fn default() -> Self {
        Self {
            place: TextPosition::Outside,
            string: String::new(),
            field: String::new(),
            has_space: false,
            word: 0,
            word_chars: 0,
            latest: [0; REPETITION_CYCLE_MAX],
            count: 0,
            equal: [0; REPETITION_CYCLE_MAX],
            total: 0,
        }
    }
}

impl RepetitionDetector {
    /// Number of tokens in strings so far.
    pub fn tokens(&self) -> u64 {
        self.total
    }

    /// The field that is being written.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Reads the next piece of the text. Returns whether a string repeats itself.
    pub fn push(&mut self, text: &str) -> bool {
        text.chars().any(|letter| self.read(letter))
    }

    fn read(&mut self, letter: char) -> bool {
        match self.place {
            TextPosition::Outside | TextPosition::AfterString => {
                match letter {
                    '"' => self.begin_string(),
                    ':' if self.place == TextPosition::AfterString => {
                        self.field = std::mem::take(&mut self.string);
                        self.place = TextPosition::Outside;
                    }
                    letter if letter.is_whitespace() => {}
                    _ => self.place = TextPosition::Outside,
                }
                false
            }
            TextPosition::Escape => {
                self.place = TextPosition::Inside;
                self.add(match letter {
                    'n' | 'r' | 't' => ' ',
                    letter => letter,
                })
            }
            TextPosition::Inside => match letter {
                '"' => {
                    let repeats = self.end_word();
                    self.place = TextPosition::AfterString;
                    repeats
                }
                '\\' => {
                    self.place = TextPosition::Escape;
                    false
                }
                letter => self.add(letter),
            },
        }
    }

    fn begin_string(&mut self) {
        self.place = TextPosition::Inside;
        self.string.clear();
        self.has_space = false;
        (self.word, self.word_chars, self.count) = (0, 0, 0);
        self.equal = [0; REPETITION_CYCLE_MAX];
    }

    fn add(&mut self, letter: char) -> bool {
        if self.string.len() < NAME_CHARS_MAX {
            self.string.push(letter);
        }
        if letter.is_whitespace() {
            self.has_space = true;
            return self.end_word();
        }
        if !letter.is_alphanumeric() {
            return self.end_word() | self.add_token(u128::from(u32::from(letter)));
        }
        self.word = (self.word << 32) | u128::from(u32::from(letter));
        self.word_chars += 1;
        self.word_chars == TOKEN_CHARS && self.end_word()
    }

    fn end_word(&mut self) -> bool {
        if self.word_chars == 0 {
            return false;
        }
        self.word_chars = 0;
        let token = std::mem::take(&mut self.word);
        self.add_token(token)
    }

    fn add_token(&mut self, token: u128) -> bool {
        let mut repeats = false;
        for (index, equal) in self.equal.iter_mut().enumerate() {
            let cycle = index + 1;
            let earlier = self
                .count
                .checked_sub(cycle)
                .map(|at| self.latest[at % REPETITION_CYCLE_MAX]);
            *equal = if earlier == Some(token) { *equal + 1 } else { 0 };
            repeats |= *equal + cycle >= REPETITION_TOKENS;
        }
        self.latest[self.count % REPETITION_CYCLE_MAX] = token;
        self.count += 1;
        self.total += 1;
        // Bytes of media in base64 may well be equal.
        repeats && (self.has_space || self.field != "data")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::RepetitionDetector;

    fn repeats(value: &Value) -> bool {
        RepetitionDetector::default().push(&value.to_string())
    }

    #[test]
    fn string_of_one_cycle_is_detected() {
        for cycle in [
            "and so on, ",
            "ha",
            "-",
            "日本語です",
            "line\n",
            "\"quoted\" \\",
            // 63 tokens.
            &format!("{}. ", "word ".repeat(62)),
        ] {
            let text = cycle.repeat(1_100);
            assert!(repeats(&json!({"a": {"b": ["fine", text]}})), "{cycle}");
        }
    }

    #[test]
    fn detection_needs_256_tokens_of_a_cycle_of_at_most_64() {
        let words = |count: usize| vec!["word"; count].join(" ");
        assert!(!repeats(&json!({"a": words(255)})));
        assert!(repeats(&json!({"a": words(256)})));
        // The beginning does not count.
        assert!(repeats(&json!({"a": format!("At first {}", words(256))})));
        assert!(!repeats(
            &json!({"a": format!("{} and {}", words(200), words(200))})
        ));
        let numbers = |count: usize| {
            (0..count)
                .map(|n| format!("{:04}", 1_000 + n))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let cycle = |count: usize| format!("{} ", numbers(count)).repeat(8);
        assert!(repeats(&json!({"a": cycle(64)})));
        assert!(!repeats(&json!({"a": cycle(65)})));
        assert!(!repeats(&json!({"a": numbers(5_000)})));
    }

    #[test]
    fn other_repetitions_are_no_fault() {
        let items = vec![json!("the same"); 1_000];
        assert!(!repeats(&json!({"list": items, "numbers": vec![0; 1_000]})));
        assert!(!repeats(&json!({"type": "base64", "data": "A".repeat(10_000)})));
        assert!(repeats(&json!({"text": "A".repeat(10_000)})));
    }

    #[test]
    fn field_and_tokens_are_reported() {
        let mut detector = RepetitionDetector::default();
        detector.push("{\"ok\": true, \"data\": {\"label\": \"bug\", \"ratio");
        assert_eq!(detector.field(), "label");
        detector.push("nale\": \"It crashes\"");
        assert_eq!(detector.field(), "rationale");
        // Names and values: ok, data, label (2), bug, rationale (3), It, crashes (2).
        assert_eq!(detector.tokens(), 11);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in "[ab\"\\\\ n]{0,40}", times in 1usize..300, size in 1usize..9) {
            let json = json!({"a": text.repeat(times)}).to_string();
            let letters: Vec<char> = json.chars().collect();
            let mut detector = RepetitionDetector::default();
            let found = letters.chunks(size).any(|piece| detector.push(&piece.iter().collect::<String>()));
            prop_assert_eq!(found, RepetitionDetector::default().push(&json));
        }
    }
}

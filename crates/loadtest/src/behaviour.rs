//! Behaviour of the upstream, parsed from the model name, which every gateway forwards unchanged:
//! `mock-t64-f1000-i200-d10` is 64 tokens, the first after 1,000 us, 200 us between them, connection reset
//! after 10.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Behaviour {
    pub(crate) tokens: u64,
    /// Before the first byte of the answer.
    pub(crate) first: Duration,
    /// Between two tokens.
    pub(crate) gap: Duration,
    /// The connection is reset after this many tokens.
    pub(crate) dies_after: Option<u64>,
    pub(crate) form: OutputKind,
}

/// What the tokens form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputKind {
    Text,
    /// An envelope of a module; the tokens are its rationale.
    Envelope,
}

impl Behaviour {
    pub(crate) fn of(model: &str) -> Self {
        let mut behaviour = Self {
            tokens: 64,
            first: Duration::ZERO,
            gap: Duration::ZERO,
            dies_after: None,
            form: OutputKind::Text,
        };
        for word in model.split('-') {
            if word == "env" {
                behaviour.form = OutputKind::Envelope;
            }
            let mut letters = word.chars();
            let letter = letters.next();
            let Ok(number) = letters.as_str().parse::<u64>() else {
                continue;
            };
            match letter {
                Some('t') => behaviour.tokens = number,
                Some('f') => behaviour.first = Duration::from_micros(number),
                Some('i') => behaviour.gap = Duration::from_micros(number),
                Some('d') => behaviour.dies_after = Some(number),
                _ => {}
            }
        }
        behaviour
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_name_determines_behaviour() {
        let plain = Behaviour::of("mock");
        assert_eq!(plain.tokens, 64);
        assert_eq!(plain.form, OutputKind::Text);
        let all = Behaviour::of("mock-env-t8-f1000-i20-d3");
        assert_eq!(
            all,
            Behaviour {
                tokens: 8,
                first: Duration::from_millis(1),
                gap: Duration::from_micros(20),
                dies_after: Some(3),
                form: OutputKind::Envelope,
            }
        );
        assert_eq!(Behaviour::of("é-t"), plain);
    }
}

//! Line prompts with defaults, on any reader and writer.

use std::io::{BufRead, Write};

use anyhow::{Result, bail};
use clap::ValueEnum;
use owo_colors::OwoColorize;

use super::Kind;

/// Line prompts with defaults.
pub(super) struct Prompts<'a> {
    pub(super) from: &'a mut dyn BufRead,
    pub(super) to: &'a mut dyn Write,
}

impl Prompts<'_> {
    /// Prompts until the answer is valid. An empty line selects the default.
    pub(super) fn ask(
        &mut self,
        question: &str,
        default: &str,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Result<String> {
        loop {
            write!(self.to, "{} [{default}]: ", question.bold())?;
            self.to.flush()?;
            let mut line = String::new();
            if self.from.read_line(&mut line)? == 0 {
                bail!("no answer: end of input; use --yes for the defaults");
            }
            let answer = match line.trim() {
                "" => default,
                answer => answer,
            };
            match check(answer) {
                Ok(()) => return Ok(String::from(answer)),
                Err(problem) => writeln!(self.to, "  {problem}")?,
            }
        }
    }

    pub(super) fn choose<T: ValueEnum>(&mut self, question: &str, default: &str) -> Result<T> {
        let answer = self.ask(question, default, |text| T::from_str(text, true).map(drop))?;
        T::from_str(&answer, true).map_err(anyhow::Error::msg)
    }

    pub(super) fn choose_many(&mut self, question: &str, default: &str) -> Result<Vec<Kind>> {
        let read = |text: &str| -> Result<Vec<Kind>, String> {
            let words = text.split([',', ' ']).filter(|word| !word.is_empty());
            words.map(|word| Kind::from_str(word, true)).collect()
        };
        let answer = self.ask(question, default, |text| read(text).map(drop))?;
        read(&answer).map_err(anyhow::Error::msg)
    }
}

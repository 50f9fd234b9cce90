//! `cogn run --batch`: reads one input per line and writes one envelope per line. Answers are written as they
//! complete, with the number of their line. A batch that was stopped resumes with the missing lines.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use engine::{Engine, RunRequest};
use futures::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::answer::interrupted;
use super::input::INPUT_BYTES_MAX;
use crate::command_engine::envelope_of;
use crate::exit::Exit;
use crate::output::{Output, hinted};

/// The parameters of a batch.
pub(super) struct Batch<'a> {
    pub(super) engine: &'a Engine,
    pub(super) from: &'a Path,
    pub(super) to: &'a Path,
    pub(super) jobs: usize,
}

/// Completed lines: the hash of the input, and whether the run succeeded.
type BatchResult = BTreeMap<u64, (String, bool)>;

#[derive(Default)]
struct Counts {
    good: u64,
    bad: u64,
    before: u64,
}

impl Batch<'_> {
    pub(super) async fn run(
        &self,
        execute: impl Fn(Value) -> Result<RunRequest>,
        output: &Output,
    ) -> Result<Exit> {
        let done = self.finished()?;
        let mut counts = Counts::default();
        let mut pending = Vec::new();
        for line in Lines::open(self.from)? {
            let line = line?;
            match done.get(&line.number) {
                Some((sha256, good)) if *sha256 == line.sha256 => {
                    counts.before += 1;
                    *(if *good { &mut counts.good } else { &mut counts.bad }) += 1;
                }
                Some(_) => {
                    return Err(hinted(
                        format!("{} contains the results of other inputs", self.to.display()),
                        "use another file with -o, or remove this one",
                    ));
                }
                None => pending.push(line),
            }
        }
        let bar = bar(pending.len(), output);
        let mut file = OpenOptions::new().create(true).append(true).open(self.to);
        let file = file.as_mut().map_err(|error| anyhow::anyhow!("{error}"))?;
        let execute = &execute;
        let answers = stream::iter(pending)
            .map(|line| async move {
                let envelope = envelope_of(self.engine, execute(line.input)?).await?;
                Ok::<_, anyhow::Error>((line.number, line.id, line.sha256, envelope))
            })
            .buffer_unordered(self.jobs);
        let mut answers = std::pin::pin!(answers);
        loop {
            let answer = tokio::select! {
                biased;
                () = interrupted() => {
                    let hint = "run the same command again to resume";
                    return Err(hinted("stopped before the batch ended", hint));
                }
                answer = answers.next() => answer,
            };
            let Some(answer) = answer else { break };
            let (number, id, sha256, envelope) = answer?;
            let good = envelope.get("ok") == Some(&Value::Bool(true));
            *(if good { &mut counts.good } else { &mut counts.bad }) += 1;
            let line = json!({"line": number, "id": id, "input_sha256": sha256, "envelope": envelope});
            // One write per line, so that a kill truncates at most the last line.
            file.write_all(format!("{line}\n").as_bytes())
                .with_context(|| format!("cannot write {}", self.to.display()))?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        report(&counts, output)?;
        Ok(if counts.bad == 0 {
            Exit::Success
        } else {
            Exit::Failure
        })
    }

    /// The lines completed by an earlier process. A truncated last line is removed.
    fn finished(&self) -> Result<BatchResult> {
        let mut done = BatchResult::new();
        let shown = || format!("cannot read {}", self.to.display());
        let file = match File::open(self.to) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(done),
            Err(error) => return Err(error).with_context(shown),
        };
        let mut reader = BufReader::new(file);
        let (mut whole, mut line) = (0_u64, String::new());
        loop {
            line.clear();
            let length = (&mut reader).take(4 * INPUT_BYTES_MAX).read_line(&mut line);
            let length = length.with_context(shown)?;
            if length == 0 {
                return Ok(done);
            }
            if !line.ends_with('\n') {
                break;
            }
            let row: Value = serde_json::from_str(&line).unwrap_or_default();
            match (row["line"].as_u64(), row["input_sha256"].as_str()) {
                (Some(number), Some(sha256)) => {
                    let good = row["envelope"]["ok"] == true;
                    done.insert(number, (String::from(sha256), good));
                }
                _ => bail!("{} is not the output of a batch", self.to.display()),
            }
            whole += length as u64;
        }
        let file = OpenOptions::new().write(true).open(self.to);
        file.and_then(|file| file.set_len(whole)).with_context(shown)?;
        Ok(done)
    }
}

/// A non-empty line of the input.
struct BatchLine {
    number: u64,
    id: Value,
    input: Value,
    sha256: String,
}

struct Lines {
    reader: BufReader<File>,
    number: u64,
    shown: String,
}

impl Lines {
    fn open(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot read the batch {shown}"))?;
        Ok(Self {
            reader: BufReader::new(file),
            number: 0,
            shown,
        })
    }

    fn read(&mut self) -> Result<Option<BatchLine>> {
        loop {
            let mut text = String::new();
            let place = |number: u64| format!("{}, line {number}", self.shown);
            let read = (&mut self.reader).take(INPUT_BYTES_MAX + 1).read_line(&mut text);
            let length = read.with_context(|| place(self.number + 1))?;
            self.number += 1;
            if length == 0 {
                return Ok(None);
            }
            if length as u64 > INPUT_BYTES_MAX {
                bail!("{} exceeds {INPUT_BYTES_MAX} bytes (E1005)", place(self.number));
            }
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            let value: Value =
                serde_json::from_str(text).with_context(|| format!("{} is not JSON", place(self.number)))?;
            let (id, input) = match &value {
                Value::Object(map)
                    if map.len() == 2 && map.contains_key("id") && map.contains_key("input") =>
                {
                    (value["id"].clone(), value["input"].clone())
                }
                _ => (Value::Null, value),
            };
            let sha256 = hex::encode(Sha256::digest(text));
            let number = self.number;
            return Ok(Some(BatchLine {
                number,
                id,
                input,
                sha256,
            }));
        }
    }
}

impl Iterator for Lines {
    type Item = Result<BatchLine>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

fn bar(length: usize, output: &Output) -> ProgressBar {
    if output.quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length as u64);
    match ProgressStyle::with_template("{bar:32} {pos}/{len} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn report(counts: &Counts, output: &Output) -> Result<()> {
    let Counts { good, bad, before } = counts;
    if output.json {
        output.json(&json!({"lines": good + bad, "ok": good, "failed": bad, "done_before": before}))?;
    } else {
        output.line(format!(
            "{} lines: {good} ok, {bad} failed ({before} completed earlier)",
            good + bad
        ))?;
    }
    Ok(())
}

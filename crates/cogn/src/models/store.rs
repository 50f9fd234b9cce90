//! The folder of installed models: per model a weights file, its companion files and a manifest with source
//! and digest. A weights file with its final name is complete, matches the digest and has all companion
//! files.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::catalogue::{ModelKind, default_entry};
use super::limits;
use crate::output::hinted;

const FORMS: [ModelKind; 2] = [ModelKind::Generator, ModelKind::Encoder];

#[derive(Clone, Debug)]
pub(crate) struct ModelStore {
    pub(crate) folder: PathBuf,
}

/// An installed model.
#[derive(Clone, Debug)]
pub(crate) struct InstalledModel {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) form: ModelKind,
    pub(crate) note: Option<ModelManifest>,
}

impl InstalledModel {
    pub(crate) fn is_requantised(&self) -> bool {
        let note = self.note.as_ref();
        note.is_some_and(|note| note.installed_sha256.is_some())
    }
}

/// The manifest beside the weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModelManifest {
    /// The digest of the file as it was pulled.
    pub(crate) sha256: String,
    pub(crate) source: String,
    /// The digest of the installed file, if it was requantised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) installed_sha256: Option<String>,
}

/// Lock against concurrent pulls of the same model. It is released when the process ends; the lock file is
/// removed on drop.
#[derive(Debug)]
pub(crate) struct PullGuard {
    _lock: File,
    lock_path: PathBuf,
    /// The folder of models, if this guard created it.
    created_folder: Option<PathBuf>,
    pub(crate) partial: PathBuf,
    /// The companion files, each with the path of its partial file.
    pub(crate) companions: Vec<(&'static str, PathBuf)>,
    form: ModelKind,
    path: PathBuf,
    note: PathBuf,
}

impl ModelStore {
    /// `COGN_MODELS_DIR`, or `cogn/models` in the data folder of the user.
    pub(crate) fn from_environment() -> Result<Self> {
        let set = |name: &str| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let folder = set("COGN_MODELS_DIR")
            .or_else(|| set("XDG_DATA_HOME").map(|data| data.join("cogn/models")))
            .or_else(|| env::home_dir().map(|home| home.join(".local/share/cogn/models")));
        let Some(folder) = folder else {
            return Err(hinted(
                "no folder for models: the user has no home folder",
                "set COGN_MODELS_DIR",
            ));
        };
        Ok(Self { folder })
    }

    /// All installed models, by name.
    pub(crate) fn all(&self) -> Result<Vec<InstalledModel>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", self.folder.display()));
            }
        };
        let mut all = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            if FORMS.iter().any(|form| extension == Some(form.extension()))
                && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
            {
                all.extend(self.look(name));
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.dedup_by(|a, b| a.name == b.name);
        Ok(all)
    }

    pub(crate) fn find(&self, name: &str) -> Option<InstalledModel> {
        is_name(name).then(|| self.look(name)).flatten()
    }

    /// The default model: the first entry of the catalogue if installed, otherwise the first installed model.
    pub(crate) fn default_model(&self, form: ModelKind) -> Result<Option<InstalledModel>> {
        let default = default_entry(form).and_then(|entry| self.find(entry.name));
        match default.filter(|installed| installed.form == form) {
            Some(installed) => Ok(Some(installed)),
            None => Ok(self.all()?.into_iter().find(|installed| installed.form == form)),
        }
    }

    pub(crate) fn remove(&self, name: &str) -> Result<InstalledModel> {
        let Some(installed) = self.find(name) else {
            return Err(hinted(
                format!("model `{name}` is not installed"),
                "`cogn models list` shows the installed models",
            ));
        };
        let pulling = self.begin(name, installed.form)?;
        let removed = fs::remove_file(&installed.path);
        removed.with_context(|| format!("cannot remove {}", installed.path.display()))?;
        let companions = installed.form.companions().iter();
        let companions = companions.map(|extension| self.beside(name, extension));
        let partials = pulling.companions.iter().map(|(_, partial)| partial.clone());
        let others = ["json", "partial", "requantised"].map(|extension| self.beside(name, extension));
        for left in companions.chain(partials).chain(others) {
            match fs::remove_file(&left) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        Ok(installed)
    }

    /// Locks a model name for a pull or removal.
    pub(crate) fn begin(&self, name: &str, form: ModelKind) -> Result<PullGuard> {
        if !is_name(name) {
            bail!("`{name}` is not a valid model name: only letters, digits, `.`, `_` and `-` are allowed");
        }
        let exists = self.folder.try_exists().unwrap_or(true);
        let created_folder = (!exists).then(|| self.folder.clone());
        let made = fs::create_dir_all(&self.folder);
        made.with_context(|| format!("cannot create {}", self.folder.display()))?;
        let lock_path = self.beside(name, "lock");
        let lock = lock_file(&lock_path, name)?;
        Ok(PullGuard {
            _lock: lock,
            lock_path,
            created_folder,
            partial: self.beside(name, "partial"),
            companions: form
                .companions()
                .iter()
                .map(|extension| (*extension, self.beside(name, &format!("{extension}.partial"))))
                .collect(),
            path: self.beside(name, form.extension()),
            form,
            note: self.beside(name, "json"),
        })
    }

    fn look(&self, name: &str) -> Option<InstalledModel> {
        let found = FORMS.iter().find_map(|form| {
            let path = self.beside(name, form.extension());
            let facts = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
            Some((*form, path, facts.len()))
        });
        let (form, path, bytes) = found?;
        let note = fs::read(self.beside(name, "json")).ok();
        Some(InstalledModel {
            name: String::from(name),
            path,
            bytes,
            form,
            note: note.and_then(|bytes| serde_json::from_slice(&bytes).ok()),
        })
    }

    fn beside(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.join(format!("{name}.{extension}"))
    }
}

impl PullGuard {
    /// The partial file of a companion.
    pub(crate) fn companion(&self, extension: &str) -> Result<&Path> {
        let found = self.companions.iter().find(|(known, _)| *known == extension);
        let found = found.map(|(_, partial)| partial.as_path());
        found.with_context(|| format!("models of this kind have no {extension}"))
    }

    /// Replaces the partial file by a requantised one and returns its digest; `None` if there is nothing to
    /// requantise. `from` is the partial file, or the same weights elsewhere.
    pub(crate) fn requantise(&self, from: &Path) -> Result<Option<String>> {
        let to = self.partial.with_extension("requantised");
        // Ignored: the next pull overwrites what cannot be removed.
        let remove = |_: &_| fs::remove_file(&to).unwrap_or_default();
        if !local::requantise(from, &to).inspect_err(remove)? {
            return Ok(None);
        }
        let digest = sha256(&to)?;
        fs::rename(&to, &self.partial).with_context(|| format!("cannot write {}", self.partial.display()))?;
        Ok(Some(digest))
    }

    /// Verifies the partial files and renames them to their final names.
    pub(crate) fn finish(&self, note: &ModelManifest) -> Result<PathBuf> {
        match self.form {
            ModelKind::Generator => local::check_weights(&self.partial)?,
            ModelKind::Encoder => local::EncoderFiles {
                weights: self.partial.clone(),
                tokenizer: self.companion("tokenizer.json")?.to_path_buf(),
                config: self.companion("config.json")?.to_path_buf(),
            }
            .check()?,
        }
        File::open(&self.partial)?.sync_all()?;
        // The weights are renamed last, so that their presence means that the model is complete.
        for (extension, partial) in &self.companions {
            File::open(partial)?.sync_all()?;
            let path = self.note.with_extension(extension);
            let moved = fs::rename(partial, &path);
            moved.with_context(|| format!("cannot write {}", path.display()))?;
        }
        let text = serde_json::to_vec_pretty(note)?;
        fs::write(&self.note, text).with_context(|| format!("cannot write {}", self.note.display()))?;
        let moved = fs::rename(&self.partial, &self.path);
        moved.with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(self.path.clone())
    }
}

impl Drop for PullGuard {
    fn drop(&mut self) {
        // Ignored: a lock file that is left does not hinder the next pull, and a folder with models stays.
        fs::remove_file(&self.lock_path).ok();
        if let Some(folder) = &self.created_folder {
            fs::remove_dir(folder).ok();
        }
    }
}

/// Creates and locks the lock file. The owner of the lock removes the file, so a file that was removed between
/// opening and locking is created again.
fn lock_file(path: &Path, name: &str) -> Result<File> {
    loop {
        let lock = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        match lock.try_lock() {
            Ok(()) if is_file_at(&lock, path) => return Ok(lock),
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let message = format!("`{name}` is being pulled by another process");
                return Err(hinted(message, "wait until it is done"));
            }
            Err(fs::TryLockError::Error(error)) => {
                let error = anyhow::Error::new(error);
                return Err(error.context(format!("cannot lock {}", path.display())));
            }
        }
    }
}

#[cfg(unix)]
fn is_file_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |facts: fs::Metadata| (facts.dev(), facts.ino());
    let there = fs::metadata(path).ok().map(id);
    there.is_some() && file.metadata().ok().map(id) == there
}

#[cfg(not(unix))]
fn is_file_at(_: &File, path: &Path) -> bool {
    // An open file cannot be removed on Windows.
    path.try_exists().unwrap_or(false)
}

/// Names are used as file names and must not contain path separators.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty()
        && name.len() <= limits::NAME_BYTES_MAX
        && !name.starts_with('.')
        && name.chars().all(plain)
}

pub(crate) fn sha256(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1024 * 1024];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(hex::encode(digest.finalize()));
        }
        digest.update(buffer.get(..read).unwrap_or_default());
    }
}

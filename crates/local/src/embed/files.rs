//! The three files of a sentence encoder, and a check before they are loaded, so that a wrong file is
//! refused when it is fetched and not on first use.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::limits;

/// Paths of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncoderFiles {
    pub weights: PathBuf,
    pub tokenizer: PathBuf,
    pub config: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is not a safetensors file", path.display())]
    NotSafetensors { path: PathBuf },
    #[error("{} is not valid JSON: {reason}", path.display())]
    NotJson { path: PathBuf, reason: String },
    #[error("{} describes a model of type `{kind}`; only `bert` encoders are supported", path.display())]
    Kind { path: PathBuf, kind: String },
}

impl EncoderFiles {
    /// The layout of model hubs.
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            weights: folder.join("model.safetensors"),
            tokenizer: folder.join("tokenizer.json"),
            config: folder.join("config.json"),
        }
    }

    /// Next to the weights: `NAME.safetensors`, `NAME.tokenizer.json`, `NAME.config.json`.
    pub fn beside(weights: &Path) -> Self {
        Self {
            weights: weights.to_path_buf(),
            tokenizer: weights.with_extension("tokenizer.json"),
            config: weights.with_extension("config.json"),
        }
    }

    /// # Errors
    /// If a file is missing or has another format. Files that pass may still be invalid.
    pub fn check(&self) -> Result<(), FilesError> {
        check_safetensors(&self.weights)?;
        read_json(&self.tokenizer)?;
        let config = read_json(&self.config)?;
        let kind = config["model_type"].as_str().unwrap_or_default();
        match kind {
            "bert" => Ok(()),
            _ => Err(FilesError::Kind {
                path: self.config.clone(),
                kind: kind.chars().take(40).collect(),
            }),
        }
    }
}

/// Checks the header length and that the header starts like JSON.
fn check_safetensors(path: &Path) -> Result<(), FilesError> {
    let mut head = [0; 9];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    let foreign = || FilesError::NotSafetensors {
        path: path.to_path_buf(),
    };
    match read {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(foreign()),
        Err(source) => {
            return Err(FilesError::Unreadable {
                path: path.to_path_buf(),
                source,
            });
        }
    }
    let [length @ .., brace] = head;
    let plausible = (2..=limits::HEADER_BYTES_MAX).contains(&u64::from_le_bytes(length));
    match plausible && brace == b'{' {
        true => Ok(()),
        false => Err(foreign()),
    }
}

pub(super) fn read_json(path: &Path) -> Result<Value, FilesError> {
    let bytes = read_bounded(path, limits::TOKENIZER_BYTES_MAX)?;
    serde_json::from_slice(&bytes).map_err(|error| FilesError::NotJson {
        path: path.to_path_buf(),
        reason: error.to_string(),
    })
}

pub(super) fn read_bounded(path: &Path, bytes_max: u64) -> Result<Vec<u8>, FilesError> {
    let read = fs::metadata(path).and_then(|facts| match facts.len() > bytes_max {
        true => Err(io::Error::from(io::ErrorKind::FileTooLarge)),
        false => fs::read(path),
    });
    read.map_err(|source| FilesError::Unreadable {
        path: path.to_path_buf(),
        source,
    })
}

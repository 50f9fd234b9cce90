//! Checks a weights file before native code reads it: whether it exists and is GGUF. Needs no native
//! runtime, so that a wrong file is refused when it is fetched and not on first use.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    #[error("cannot read the weights {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is not a GGUF file", path.display())]
    NotGguf { path: PathBuf },
    #[error("{} has GGUF version {version}; versions 2 and 3 are supported", path.display())]
    Version { path: PathBuf, version: u32 },
    #[error("{} is damaged: {reason}", path.display())]
    Damaged { path: PathBuf, reason: &'static str },
    #[error("cannot write the requantised weights {}: {source}", path.display())]
    NotRequantised { path: PathBuf, source: io::Error },
}

/// Checks magic number and version. A file that passes may still be invalid; the runtime reports that.
pub fn check_weights(path: &Path) -> Result<(), WeightsError> {
    let mut head = [0; 8];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    let path = path.to_path_buf();
    match read {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(WeightsError::NotGguf { path });
        }
        Err(source) => return Err(WeightsError::Unreadable { path, source }),
    }
    let [a, b, c, d, version @ ..] = head;
    if [a, b, c, d] != *b"GGUF" {
        return Err(WeightsError::NotGguf { path });
    }
    match u32::from_le_bytes(version) {
        2 | 3 => Ok(()),
        version => Err(WeightsError::Version { path, version }),
    }
}

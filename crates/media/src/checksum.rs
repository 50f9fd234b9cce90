//! Verifies the declared checksum. All digests are computed in one pass.

use std::io::Write;

use crc32fast::Hasher as Crc32;
use ir::media::Checksum;
use md5::Md5;
use sha2::{Digest as _, Sha256};

use crate::error::Error;
use crate::source::Source;

/// The sender's declarations about the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    pub mime: Option<String>,
    pub checksum: Option<Checksum>,
}

const BUFFER_BYTES: usize = 64 * 1024;

/// Length and SHA-256 of all bytes, if the declared checksum matches.
pub(crate) fn verify(source: &mut dyn Source, checksum: Option<&Checksum>) -> Result<(u64, String), Error> {
    source.rewind()?;
    let mut sha256 = Sha256::new();
    let mut md5 = Md5::new();
    let mut crc32 = Crc32::new();
    let algorithm = checksum.map(|checksum| checksum.algorithm.as_str());
    let mut length = 0;
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = source.read(&mut buffer)?;
        let Some(piece) = buffer.get(..count).filter(|piece| !piece.is_empty()) else {
            break;
        };
        length += count as u64;
        sha256.update(piece);
        match algorithm {
            Some("md5") => md5.update(piece),
            Some("crc32") => crc32.update(piece),
            _ => {}
        }
    }
    let sha256 = hex::encode(sha256.finalize());
    if let Some(checksum) = checksum {
        let actual = match checksum.algorithm.as_str() {
            "sha256" => sha256.clone(),
            "md5" => hex::encode(md5.finalize()),
            "crc32" => format!("{:08x}", crc32.finalize()),
            other => format!("unknown algorithm {other}"),
        };
        if !checksum.value.eq_ignore_ascii_case(&actual) {
            return Err(Error::Checksum {
                algorithm: checksum.algorithm.clone(),
                expected: checksum.value.to_ascii_lowercase(),
                actual,
            });
        }
    }
    Ok((length, sha256))
}

/// A writer that also counts the bytes and computes their SHA-256.
#[derive(Debug)]
pub(crate) struct HashingWriter<W> {
    inner: W,
    sha256: Sha256,
    length: u64,
}

impl<W: Write> HashingWriter<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self {
            inner,
            sha256: Sha256::new(),
            length: 0,
        }
    }

    pub(crate) fn finish(mut self) -> std::io::Result<(u64, String)> {
        self.inner.flush()?;
        Ok((self.length, hex::encode(self.sha256.finalize())))
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.sha256.update(bytes.get(..count).unwrap_or_default());
        self.length += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

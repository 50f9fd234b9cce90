//! The content of a file of the accounting log: its records, and how much of it is unreadable.

use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

use super::record::Record;
use crate::limits;

#[derive(Debug)]
pub(super) struct DecodedLog {
    pub(super) records: Vec<Record>,
    /// Lines that are not records. A killed process can leave one, a power failure or a defective disk more.
    pub(super) unreadable: usize,
    /// Of the whole file, in hexadecimal.
    pub(super) sha256: String,
}

impl DecodedLog {
    /// Also returns the length of the file.
    pub(super) fn read(mut file: &File) -> io::Result<(Self, u64)> {
        let mut text = Vec::new();
        (&mut file)
            .take(limits::ACCOUNTS_FILE_BYTES_MAX)
            .read_to_end(&mut text)?;
        let bytes = file.metadata()?.len();
        let mut log = Self::of(&text);
        // The rest of a file that is too large is not read.
        log.unreadable += usize::from(bytes > text.len() as u64);
        Ok((log, bytes))
    }

    pub(super) fn of(text: &[u8]) -> Self {
        let (mut records, mut unreadable) = (Vec::new(), 0);
        for line in text.split(|byte| *byte == b'\n') {
            // A power failure can leave zeros in place of a record, and the next record behind them.
            let zeros = line.iter().take_while(|byte| **byte == 0).count();
            let line = line.get(zeros..).unwrap_or_default();
            unreadable += usize::from(zeros > 0);
            match serde_json::from_slice(line) {
                Ok(record) => records.push(record),
                Err(_) => unreadable += usize::from(!line.is_empty()),
            }
        }
        let sha256 = Sha256::digest(text)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            records,
            unreadable,
            sha256,
        }
    }

    pub(super) fn has_unreadable(&self) -> bool {
        self.unreadable > 0
    }
}

//! The running hash of a field's text; the source of checkpoints.

use sha2::{Digest as _, Sha256};

use super::chunk::Checkpoint;

/// Byte count and hash of the sent part of one field. The bytes are not stored.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldDigest {
    bytes: u64,
    hasher: Sha256,
}

impl FieldDigest {
    pub(super) fn of(text: &str) -> Self {
        let mut digest = Self::default();
        digest.update(text);
        digest
    }

    pub(super) fn update(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.hasher.update(text.as_bytes());
    }

    pub(super) fn checkpoint(&self) -> Checkpoint {
        let hash = self.hasher.clone().finalize();
        Checkpoint {
            offset: self.bytes,
            hash: hex::encode(hash.first_chunk::<3>().unwrap_or(&[0; 3])),
        }
    }
}

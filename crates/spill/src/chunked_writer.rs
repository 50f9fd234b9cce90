//! Bytes from the network to storage: gathered into chunks, each of which is written on the blocking pool.
//! Input is not read while a chunk is written, so at most one chunk is in memory. Dropping it discards what
//! was written.

use std::io::{self, Write};

use crate::limits::CHUNK_BYTES;

/// Gathers bytes and writes them in chunks.
#[derive(Debug)]
pub struct ChunkedWriter<W> {
    out: W,
    chunk: Vec<u8>,
}

impl<W: Write + Send + 'static> ChunkedWriter<W> {
    pub const fn new(out: W) -> Self {
        Self {
            out,
            chunk: Vec::new(),
        }
    }

    pub async fn push(mut self, bytes: &[u8]) -> io::Result<Self> {
        self.chunk.extend_from_slice(bytes);
        match self.chunk.len() < CHUNK_BYTES {
            true => Ok(self),
            false => self.write().await,
        }
    }

    /// Returns the writer after everything is written.
    pub async fn finish(self) -> io::Result<W> {
        Ok(self.write().await?.out)
    }

    async fn write(mut self) -> io::Result<Self> {
        let work = tokio::task::spawn_blocking(move || {
            self.out.write_all(&self.chunk)?;
            self.chunk.clear();
            Ok(self)
        });
        work.await.map_err(io::Error::other)?
    }
}

//! Bytes on their way from the network to where they are kept: gathered into pieces, and each piece written off
//! the event loop. Nothing more is taken while one is written, so that no more than a piece is ever held.
//! Whoever drops it lets go of what was written.

use std::io::{self, Write};

use crate::limits::MEDIA_CHUNK_BYTES;

#[derive(Debug)]
pub struct Intake<W> {
    out: W,
    piece: Vec<u8>,
}

impl<W: Write + Send + 'static> Intake<W> {
    pub const fn new(out: W) -> Self {
        Self {
            out,
            piece: Vec::new(),
        }
    }

    pub async fn push(mut self, bytes: &[u8]) -> io::Result<Self> {
        self.piece.extend_from_slice(bytes);
        match self.piece.len() < MEDIA_CHUNK_BYTES {
            true => Ok(self),
            false => self.write().await,
        }
    }

    /// Who wrote it, when everything is written.
    pub async fn finish(self) -> io::Result<W> {
        Ok(self.write().await?.out)
    }

    async fn write(mut self) -> io::Result<Self> {
        let work = tokio::task::spawn_blocking(move || {
            self.out.write_all(&self.piece)?;
            self.piece.clear();
            Ok(self)
        });
        work.await.map_err(io::Error::other)?
    }
}

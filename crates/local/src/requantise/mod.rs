//! Requantises weights from Q4_1 to Q4_0. Both have four bits per weight; the runtime has kernels over blocks of rows
//! only for Q4_0, with which prompts are read more than twice as fast. Needs no native runtime, and gives the same bytes
//! on every machine, so that the result has a known digest. Must not know where weights come from.

mod gguf;
mod half;
mod q4;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use self::gguf::{GgufHeader, TensorEntry};
use crate::weights::{WeightsError, check_weights};

/// Bytes of Q4_1 blocks that are converted at once.
const PIECE_BYTES: u64 = 20 * 32 * 1024;

/// Writes the file `from` to `to` with Q4_0 tensors in place of Q4_1 tensors. Returns false, and writes nothing, if
/// `from` has none.
///
/// # Errors
/// If `from` is not a complete GGUF file, or a file cannot be read or written.
pub fn requantise(from: &Path, to: &Path) -> Result<bool, WeightsError> {
    check_weights(from)?;
    let unreadable = |source| WeightsError::Unreadable {
        path: from.to_path_buf(),
        source,
    };
    let file = File::open(from).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    let mut source = BufReader::new(file);
    let damaged = |reason| WeightsError::Damaged {
        path: from.to_path_buf(),
        reason,
    };
    let header = GgufHeader::read(&mut source, bytes).map_err(damaged)?;
    if header.tensors.iter().all(|tensor| tensor.kind != gguf::Q4_1) {
        return Ok(false);
    }
    write(&header, &mut source, to).map_err(|source| WeightsError::NotRequantised {
        path: to.to_path_buf(),
        source,
    })?;
    Ok(true)
}

fn write(header: &GgufHeader, source: &mut BufReader<File>, to: &Path) -> io::Result<()> {
    let mut target = BufWriter::new(File::create(to)?);
    let mut written = header.write_as_q4_0(&mut target)?;
    for tensor in header.by_offset() {
        source.seek(SeekFrom::Start(header.data_start + tensor.offset))?;
        let mut left = source.take(tensor.bytes);
        written += match tensor.kind {
            gguf::Q4_1 => convert(&mut left, &mut target)?,
            _ => io::copy(&mut left, &mut target)?,
        };
        written += header.pad(written, &mut target)?;
    }
    target
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?
        .sync_all()
}

/// Converts the blocks of a tensor and returns the number of bytes written.
fn convert(blocks: &mut impl Read, target: &mut impl Write) -> io::Result<u64> {
    let mut written = 0;
    let mut piece = Vec::new();
    loop {
        piece.clear();
        if blocks.by_ref().take(PIECE_BYTES).read_to_end(&mut piece)? == 0 {
            return Ok(written);
        }
        for block in piece.as_chunks().0 {
            let block = q4::requantise(block);
            target.write_all(&block)?;
            written += block.len() as u64;
        }
    }
}

impl TensorEntry {
    /// The size of the tensor in the result.
    fn bytes_as_q4_0(&self) -> u64 {
        match self.kind {
            gguf::Q4_1 => self.bytes / q4::Q4_1_BYTES * q4::Q4_0_BYTES,
            _ => self.bytes,
        }
    }
}

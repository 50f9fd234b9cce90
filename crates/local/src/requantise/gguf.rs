//! The header of a GGUF file: its bytes, and the places in them that depend on the type of the tensors. Metadata is
//! skipped, not interpreted, and copied as it is. Every size in the file is checked before it is used.

use std::io::{self, Read, Write};

use super::q4;
use crate::limits;

/// Types of tensors in the file format.
pub(super) const Q4_0: u32 = 2;
pub(super) const Q4_1: u32 = 3;
/// Values of `general.file_type` of files that consist mostly of one type.
const FILE_TYPE_Q4_0: u32 = 2;
const FILE_TYPE_Q4_1: u32 = 3;
/// Kinds of metadata values.
const UINT32: u32 = 4;
const STRING: u32 = 8;
const ARRAY: u32 = 9;

#[derive(Debug)]
pub(super) struct GgufHeader {
    bytes: Vec<u8>,
    alignment: u64,
    /// The place of `general.file_type` if it says Q4_1.
    file_type_at: Option<usize>,
    /// Where the data of the tensors begins.
    pub(super) data_start: u64,
    /// In the order of the header.
    pub(super) tensors: Vec<TensorEntry>,
}

#[derive(Clone, Debug)]
pub(super) struct TensorEntry {
    /// The place of the type in the header, which is followed by the offset.
    kind_at: usize,
    pub(super) kind: u32,
    elements: u64,
    /// Relative to the start of the data.
    pub(super) offset: u64,
    /// For Q4_1 the size of the blocks, otherwise the space until the next tensor.
    pub(super) bytes: u64,
}

type DamageReason = &'static str;

impl GgufHeader {
    /// Reads the header of a file with that many bytes.
    pub(super) fn read(source: &mut impl Read, file_bytes: u64) -> Result<Self, DamageReason> {
        let mut reader = HeaderReader {
            source,
            bytes: Vec::new(),
        };
        if reader.u32()? != u32::from_le_bytes(*b"GGUF") || !matches!(reader.u32()?, 2 | 3) {
            return Err("it has no GGUF header of version 2 or 3");
        }
        let tensor_count = reader.u64()?;
        let value_count = reader.u64()?;
        let mut alignment = 32;
        let mut file_type_at = None;
        for _ in 0..value_count {
            let key = reader.string()?;
            let kind = reader.u32()?;
            let at = reader.bytes.len();
            match (key.as_slice(), kind) {
                (b"general.alignment", UINT32) => alignment = u64::from(reader.u32()?),
                (b"general.file_type", UINT32) if reader.u32()? == FILE_TYPE_Q4_1 => file_type_at = Some(at),
                (b"general.file_type", UINT32) => {}
                _ => reader.skip_value(kind)?,
            }
        }
        if !alignment.is_power_of_two() {
            return Err("its alignment is not a power of two");
        }
        let mut tensors = Vec::new();
        for _ in 0..tensor_count {
            tensors.push(reader.tensor()?);
        }
        let bytes = reader.bytes;
        let data_start = (bytes.len() as u64).next_multiple_of(alignment);
        let mut header = Self {
            bytes,
            alignment,
            file_type_at,
            data_start,
            tensors,
        };
        let data_bytes = file_bytes.checked_sub(data_start).ok_or(TRUNCATED)?;
        header.measure(data_bytes)?;
        Ok(header)
    }

    /// The tensors in the order of their data.
    pub(super) fn by_offset(&self) -> Vec<&TensorEntry> {
        let mut tensors: Vec<_> = self.tensors.iter().collect();
        tensors.sort_by_key(|tensor| tensor.offset);
        tensors
    }

    /// Sets the size of each tensor.
    fn measure(&mut self, data_bytes: u64) -> Result<(), DamageReason> {
        let mut offsets: Vec<u64> = self.tensors.iter().map(|tensor| tensor.offset).collect();
        offsets.sort_unstable();
        for tensor in &mut self.tensors {
            let after = offsets.partition_point(|offset| *offset <= tensor.offset);
            let end = offsets.get(after).copied().unwrap_or(data_bytes);
            let space = end.min(data_bytes).checked_sub(tensor.offset).ok_or(TRUNCATED)?;
            tensor.bytes = match tensor.kind {
                Q4_1 => (tensor.elements / 32)
                    .checked_mul(q4::Q4_1_BYTES)
                    .filter(|bytes| *bytes <= space && tensor.elements.is_multiple_of(32))
                    .ok_or("the size of a tensor does not match its data")?,
                _ => space,
            };
        }
        Ok(())
    }

    /// Writes the header with Q4_0 in place of Q4_1 and the offsets that follow from it. Returns the number of bytes
    /// including padding.
    pub(super) fn write_as_q4_0(&self, target: &mut impl Write) -> io::Result<u64> {
        let mut bytes = self.bytes.clone();
        let mut offset = 0_u64;
        for tensor in self.by_offset() {
            if tensor.kind == Q4_1 {
                put(&mut bytes, tensor.kind_at, &Q4_0.to_le_bytes());
            }
            put(&mut bytes, tensor.kind_at + 4, &offset.to_le_bytes());
            offset = (offset + tensor.bytes_as_q4_0()).next_multiple_of(self.alignment);
        }
        if let Some(at) = self.file_type_at {
            put(&mut bytes, at, &FILE_TYPE_Q4_0.to_le_bytes());
        }
        target.write_all(&bytes)?;
        let written = bytes.len() as u64;
        Ok(written + self.pad(written, target)?)
    }

    /// Pads to the alignment, and returns the number of bytes.
    pub(super) fn pad(&self, written: u64, target: &mut impl Write) -> io::Result<u64> {
        let missing = written.next_multiple_of(self.alignment) - written;
        io::copy(&mut io::repeat(0).take(missing), target)
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

const TRUNCATED: DamageReason = "it is truncated";

/// Reads values and retains their bytes.
struct HeaderReader<'a, R> {
    source: &'a mut R,
    bytes: Vec<u8>,
}

impl<R: Read> HeaderReader<'_, R> {
    /// The next `count` bytes.
    fn take(&mut self, count: u64) -> Result<&[u8], DamageReason> {
        let start = self.bytes.len();
        if count > limits::HEADER_BYTES_MAX.saturating_sub(start as u64) {
            return Err("its header is too large");
        }
        let read = self.source.by_ref().take(count).read_to_end(&mut self.bytes);
        match read {
            Ok(read) if read as u64 == count => Ok(self.bytes.get(start..).unwrap_or_default()),
            Ok(_) => Err(TRUNCATED),
            Err(_) => Err("it cannot be read"),
        }
    }

    fn u32(&mut self) -> Result<u32, DamageReason> {
        let bytes = self.take(4)?.first_chunk().copied().unwrap_or_default();
        Ok(u32::from_le_bytes(bytes))
    }

    fn u64(&mut self) -> Result<u64, DamageReason> {
        let bytes = self.take(8)?.first_chunk().copied().unwrap_or_default();
        Ok(u64::from_le_bytes(bytes))
    }

    fn string(&mut self) -> Result<Vec<u8>, DamageReason> {
        let length = self.u64()?;
        Ok(self.take(length)?.to_vec())
    }

    fn skip_value(&mut self, kind: u32) -> Result<(), DamageReason> {
        if kind != ARRAY {
            return self.skip_values(kind, 1);
        }
        let kind = self.u32()?;
        let count = self.u64()?;
        self.skip_values(kind, count)
    }

    fn skip_values(&mut self, kind: u32, count: u64) -> Result<(), DamageReason> {
        let size = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            10..=12 => 8,
            STRING => {
                for _ in 0..count {
                    self.string()?;
                }
                return Ok(());
            }
            _ => return Err("its metadata has a value of an unknown kind"),
        };
        self.take(count.saturating_mul(size)).map(drop)
    }

    fn tensor(&mut self) -> Result<TensorEntry, DamageReason> {
        self.string()?;
        let mut elements = 1_u64;
        for _ in 0..self.u32()? {
            elements = elements.saturating_mul(self.u64()?);
        }
        let kind_at = self.bytes.len();
        Ok(TensorEntry {
            kind_at,
            kind: self.u32()?,
            elements,
            offset: self.u64()?,
            bytes: 0,
        })
    }
}

//! MP3: a sequence of frames. Tags before and after them are removed.

use super::RetainedAudio;
use crate::error::Error;
use crate::source::{Source, le_u32, length, read_at};

const ID3V1_BYTES: u64 = 128;
const APE_FOOTER_BYTES: u64 = 32;
/// Maximum number of consecutive tags.
const TAGS_MAX: usize = 16;
/// Zero padding that writers leave after a tag.
const PADDING_BYTES_MAX: u64 = 64 * 1024;

pub(super) fn walk(source: &mut dyn Source) -> Result<RetainedAudio, Error> {
    let mut kept = RetainedAudio::default();
    let total = length(source)?;
    let mut start = 0;
    for _ in 0..TAGS_MAX {
        match id3v2(source, start, total)? {
            Some(end) => start = end,
            None => break,
        }
    }
    if start > 0 {
        kept.removed.push("id3");
    }
    let start = first_frame(source, start, total)?;
    let mut end = total;
    for _ in 0..TAGS_MAX {
        match tag_before(source, start, end)? {
            Some(shorter) => end = shorter,
            None => break,
        }
    }
    if end < total {
        kept.removed.push("tags");
    }
    kept.pieces.copy(start..end);
    Ok(kept)
}

/// The end of an ID3v2 tag that begins here.
fn id3v2(source: &mut dyn Source, at: u64, total: u64) -> Result<Option<u64>, Error> {
    if total.saturating_sub(at) < 10 {
        return Ok(None);
    }
    let head = read_at(source, at, 10)?;
    let [b'I', b'D', b'3', _, _, flags, size @ ..] = head.as_slice() else {
        return Ok(None);
    };
    let size = size.iter().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f));
    let footer = if flags & 0x10 == 0 { 0 } else { 10 };
    let end = at + 10 + size + footer;
    if end >= total {
        return Err(Error::truncated());
    }
    Ok(Some(end))
}

/// Start of the first frame; only zero padding may precede it.
fn first_frame(source: &mut dyn Source, from: u64, total: u64) -> Result<u64, Error> {
    let window = read_at(source, from, total.saturating_sub(from).min(PADDING_BYTES_MAX))?;
    let zeros = window.iter().take_while(|byte| **byte == 0).count();
    match window.get(zeros..zeros + 2) {
        Some([0xff, second]) if second & 0xe0 == 0xe0 => Ok(from + zeros as u64),
        _ => Err(Error::undecodable("no audio frame after its tags")),
    }
}

/// Start of a tag that ends at `end`.
fn tag_before(source: &mut dyn Source, start: u64, end: u64) -> Result<Option<u64>, Error> {
    let room = end.saturating_sub(start);
    if room > ID3V1_BYTES && read_at(source, end - ID3V1_BYTES, 3)? == b"TAG" {
        return Ok(Some(end - ID3V1_BYTES));
    }
    if room <= APE_FOOTER_BYTES {
        return Ok(None);
    }
    let footer = read_at(source, end - APE_FOOTER_BYTES, APE_FOOTER_BYTES)?;
    if !footer.starts_with(b"APETAGEX") {
        return Ok(None);
    }
    let size = u64::from(le_u32(&footer, 12).unwrap_or(0));
    let has_header = le_u32(&footer, 20).is_some_and(|flags| flags & 0x8000_0000 != 0);
    let size = size + if has_header { APE_FOOTER_BYTES } else { 0 };
    Ok((size > 0 && size < room).then(|| end - size))
}

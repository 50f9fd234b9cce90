//! WebP, chunk by chunk. Retained: frames, transparency, timing, colour profiles and the orientation.

use super::ContainerScan;
use crate::error::Error;
use crate::limits;
use crate::orientation::Orientation;
use crate::range_writer::SegmentList;
use crate::source::le_u32;

const KEPT: &[&[u8; 4]] = &[b"VP8 ", b"VP8L", b"ALPH", b"ANIM", b"ANMF", b"ICCP"];
/// Bits of the extended header that declare EXIF and XMP.
const HAS_EXIF: u8 = 0x08;
const HAS_XMP: u8 = 0x04;

pub(super) fn walk(bytes: &[u8]) -> Result<ContainerScan, Error> {
    let mut walk = ContainerScan::default();
    let size = le_u32(bytes, 4).ok_or_else(Error::truncated)? as usize;
    let end = size.checked_add(8).filter(|end| *end <= bytes.len());
    let end = end.ok_or_else(Error::truncated)?;
    walk.end = end as u64;
    let mut kept = RetainedChunks::default();
    let mut at = 12;
    let mut parts = 0;
    while at < end {
        parts += 1;
        if parts > limits::PARTS_MAX {
            return Err(Error::undecodable("it has too many chunks"));
        }
        let kind = bytes.get(at..at + 4).ok_or_else(Error::truncated)?;
        let length = le_u32(bytes, at + 4).ok_or_else(Error::truncated)? as usize;
        let body_end = (at + 8).checked_add(length).filter(|body_end| *body_end <= end);
        let body_end = body_end.ok_or_else(Error::truncated)?;
        let body = bytes.get(at + 8..body_end).unwrap_or_default();
        let next = (body_end + length % 2).min(end);
        match kind {
            b"VP8X" => kept.extended(body, &mut walk)?,
            b"EXIF" => {
                walk.remove("exif");
                // Some writers keep the prefix that belongs only to JPEG.
                let tiff = body.strip_prefix(b"Exif\0\0").unwrap_or(body);
                walk.orientation = walk.orientation.or_else(|| Orientation::of_exif(tiff));
            }
            b"XMP " => walk.remove("xmp"),
            kind if KEPT.iter().any(|kept| kind == kept.as_slice()) => {
                walk.frames += u64::from(matches!(kind, b"VP8 " | b"VP8L" | b"ANMF"));
                kept.range(at, next);
            }
            _ => walk.remove("application data"),
        }
        at = next;
    }
    if walk.frames == 0 {
        return Err(Error::undecodable("it contains no image"));
    }
    walk.pieces = kept.into_pieces(walk.orientation);
    Ok(walk)
}

/// The retained chunks, collected before the RIFF size is known.
#[derive(Default)]
struct RetainedChunks {
    header: Option<Vec<u8>>,
    ranges: Vec<std::ops::Range<u64>>,
    length: u64,
}

impl RetainedChunks {
    fn extended(&mut self, body: &[u8], walk: &mut ContainerScan) -> Result<(), Error> {
        if self.header.is_some() || !self.ranges.is_empty() || body.len() != 10 {
            return Err(Error::undecodable("its extended header is not the first chunk"));
        }
        let mut header = Vec::from(*b"VP8X\x0a\0\0\0");
        header.extend(body);
        if let Some(flags) = header.get_mut(8) {
            *flags &= !(HAS_EXIF | HAS_XMP);
        }
        walk.frames = 0;
        self.header = Some(header);
        Ok(())
    }

    fn range(&mut self, from: usize, to: usize) {
        self.ranges.push(from as u64..to as u64);
        self.length += (to - from) as u64;
    }

    fn into_pieces(mut self, orientation: Option<Orientation>) -> SegmentList {
        let exif = match (&mut self.header, orientation) {
            (Some(header), Some(orientation)) => {
                if let Some(flags) = header.get_mut(8) {
                    *flags |= HAS_EXIF;
                }
                let tiff = orientation.to_exif();
                let mut exif = Vec::from(*b"EXIF");
                exif.extend(u32::try_from(tiff.len()).unwrap_or(0).to_le_bytes());
                exif.extend(tiff);
                exif
            }
            _ => Vec::new(),
        };
        let header = self.header.unwrap_or_default();
        let odd = self.length % 2;
        let size = 4 + header.len() as u64 + self.length + odd + exif.len() as u64;
        let mut head = Vec::from(*b"RIFF");
        head.extend(u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes());
        head.extend(b"WEBP");
        head.extend(header);
        let mut pieces = SegmentList::default();
        pieces.put(head);
        for range in self.ranges {
            pieces.copy(range);
        }
        pieces.zeros(odd);
        pieces.put(exif);
        pieces
    }
}

//! JPEG, marker by marker. Retained: segments needed for decoding, JFIF without its thumbnail, colour
//! profiles, Adobe's colour transform, and the orientation.

use super::ContainerScan;
use crate::error::Error;
use crate::limits;
use crate::orientation::Orientation;
use crate::source::be_u16;

const EXIF: &[u8] = b"Exif\0\0";

pub(super) fn walk(bytes: &[u8]) -> Result<ContainerScan, Error> {
    let mut walk = ContainerScan {
        frames: 1,
        ..ContainerScan::default()
    };
    walk.pieces.copy(0..2);
    let mut at = 2;
    let mut seen_scan = false;
    for _ in 0..limits::PARTS_MAX {
        let (marker, start) = marker(bytes, at)?;
        match marker {
            0xd9 if seen_scan => {
                walk.pieces.copy(start as u64 - 1..start as u64 + 1);
                walk.end = start as u64 + 1;
                return Ok(walk);
            }
            0xd9 => return Err(Error::undecodable("it contains no image")),
            0x00 | 0x01 | 0xd0..=0xd8 => return Err(Error::undecodable("a marker at an invalid position")),
            _ => {}
        }
        let length = usize::from(be_u16(bytes, start + 1).ok_or_else(Error::truncated)?);
        let end = start + 1 + length;
        let body = bytes.get(start + 3..end).ok_or_else(Error::truncated)?;
        let range = start as u64 - 1..end as u64;
        at = end;
        match marker {
            0xda => {
                seen_scan = true;
                at = after_scan(bytes, end)?;
                walk.pieces.copy(range.start..at as u64);
            }
            0xc0..=0xcf | 0xdb..=0xdf => walk.pieces.copy(range),
            _ => segment(&mut walk, marker, body, range),
        }
    }
    Err(Error::undecodable("it has too many segments"))
}

/// The next marker and the position of its second byte. Fill bytes before it are skipped.
fn marker(bytes: &[u8], at: usize) -> Result<(u8, usize), Error> {
    if *bytes.get(at).ok_or_else(Error::truncated)? != 0xff {
        return Err(Error::undecodable("a segment does not begin with a marker"));
    }
    let mut place = at + 1;
    loop {
        match bytes.get(place) {
            Some(0xff) => place += 1,
            Some(&marker) => return Ok((marker, place)),
            None => return Err(Error::truncated()),
        }
    }
}

/// The end of entropy-coded data: the next marker that is neither stuffing nor a restart.
fn after_scan(bytes: &[u8], from: usize) -> Result<usize, Error> {
    let mut at = from;
    loop {
        let rest = bytes.get(at..).ok_or_else(Error::truncated)?;
        let found = rest
            .iter()
            .position(|byte| *byte == 0xff)
            .ok_or_else(Error::truncated)?;
        match rest.get(found + 1) {
            Some(0x00 | 0xd0..=0xd7) => at += found + 2,
            Some(0xff) => at += found + 1,
            Some(_) => return Ok(at + found),
            None => return Err(Error::truncated()),
        }
    }
}

/// Handles application segments and comments.
fn segment(walk: &mut ContainerScan, marker: u8, body: &[u8], range: std::ops::Range<u64>) {
    match marker {
        0xe0 if body.starts_with(b"JFIF\0") && body.len() >= 14 => {
            let mut head = vec![0xff, 0xe0, 0, 16];
            head.extend(body.get(..12).unwrap_or_default());
            // The thumbnail may show content that was cropped from the image later.
            head.extend([0, 0]);
            walk.pieces.put(head);
            if body.len() > 14 {
                walk.remove("thumbnail");
            }
        }
        0xe2 if body.starts_with(b"ICC_PROFILE\0") => walk.pieces.copy(range),
        0xee if body.starts_with(b"Adobe") => walk.pieces.copy(range),
        0xe1 if body.starts_with(EXIF) => {
            walk.remove("exif");
            let found = body.get(EXIF.len()..).and_then(Orientation::of_exif);
            if let Some(orientation) = found.filter(|_| walk.orientation.is_none()) {
                walk.orientation = Some(orientation);
                walk.pieces.put(exif_segment(orientation));
            }
        }
        0xe1 => walk.remove("xmp"),
        0xed => walk.remove("iptc"),
        0xfe => walk.remove("comment"),
        _ => walk.remove("application data"),
    }
}

fn exif_segment(orientation: Orientation) -> Vec<u8> {
    let tiff = orientation.to_exif();
    let length = u16::try_from(2 + EXIF.len() + tiff.len()).unwrap_or(u16::MAX);
    let mut segment = vec![0xff, 0xe1];
    segment.extend(length.to_be_bytes());
    segment.extend(EXIF);
    segment.extend(tiff);
    segment
}

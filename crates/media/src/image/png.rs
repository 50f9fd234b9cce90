//! PNG, chunk by chunk, with verified checksums. Retained: chunks needed to display the still image, colour
//! and orientation. Frames of an animation after the first are removed.

use super::ContainerScan;
use crate::error::Error;
use crate::limits;
use crate::orientation::Orientation;
use crate::source::be_u32;

/// Chunks needed to display the image correctly.
const KEPT: &[&[u8; 4]] = &[
    b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"cHRM", b"gAMA", b"iCCP", b"sBIT", b"sRGB", b"bKGD",
    b"pHYs", b"cICP", b"mDCV", b"cLLI",
];

pub(super) fn walk(bytes: &[u8]) -> Result<ContainerScan, Error> {
    let mut walk = ContainerScan {
        frames: 1,
        ..ContainerScan::default()
    };
    walk.pieces.copy(0..8);
    let mut at = 8;
    let mut first = true;
    for _ in 0..limits::PARTS_MAX {
        let length = be_u32(bytes, at).ok_or_else(Error::truncated)? as usize;
        let kind = bytes.get(at + 4..at + 8).ok_or_else(Error::truncated)?;
        let body_end = (at + 8).checked_add(length).ok_or_else(Error::truncated)?;
        let body = bytes.get(at + 8..body_end).ok_or_else(Error::truncated)?;
        let stated = be_u32(bytes, body_end).ok_or_else(Error::truncated)?;
        if crc32fast::hash(bytes.get(at + 4..body_end).unwrap_or_default()) != stated {
            return Err(Error::undecodable("a chunk does not match its checksum"));
        }
        if first != (kind == b"IHDR") {
            return Err(Error::undecodable("its header is not the first chunk"));
        }
        first = false;
        let range = at as u64..body_end as u64 + 4;
        at = body_end + 4;
        if KEPT.iter().any(|kept| kind == kept.as_slice()) {
            walk.pieces.copy(range.clone());
        } else {
            leave_out(&mut walk, kind, body)?;
        }
        if kind == b"IEND" {
            walk.end = range.end;
            return Ok(walk);
        }
    }
    Err(Error::undecodable("it has too many chunks"))
}

fn leave_out(walk: &mut ContainerScan, kind: &[u8], body: &[u8]) -> Result<(), Error> {
    match kind {
        b"eXIf" => {
            walk.remove("exif");
            if let Some(orientation) = Orientation::of_exif(body).filter(|_| walk.orientation.is_none()) {
                walk.orientation = Some(orientation);
                walk.pieces.put(chunk(*b"eXIf", &orientation.to_exif()));
            }
        }
        b"tEXt" | b"zTXt" => walk.remove("text"),
        b"iTXt" if body.starts_with(b"XML:com.adobe.xmp") => walk.remove("xmp"),
        b"iTXt" => walk.remove("text"),
        b"tIME" => walk.remove("time"),
        b"acTL" => {
            walk.frames = u64::from(be_u32(body, 0).unwrap_or(1)).max(1);
        }
        b"fcTL" | b"fdAT" => {}
        // An uppercase first letter marks a critical chunk.
        [first, ..] if first.is_ascii_uppercase() => {
            return Err(Error::undecodable("it has an unknown critical chunk"));
        }
        _ => walk.remove("application data"),
    }
    Ok(())
}

fn chunk(kind: [u8; 4], body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let mut chunk = Vec::from(length.to_be_bytes());
    chunk.extend(kind);
    chunk.extend(body);
    let check = crc32fast::hash(chunk.get(4..).unwrap_or_default());
    chunk.extend(check.to_be_bytes());
    chunk
}

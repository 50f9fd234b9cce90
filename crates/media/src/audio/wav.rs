//! WAV, chunk by chunk. Retained: sample format, sample count, and samples.

use super::RetainedAudio;
use crate::error::Error;
use crate::limits;
use crate::range_writer::SegmentList;
use crate::source::{Source, le_u32, length, read_at};

/// A size placeholder of writers that could not seek back to fill it in.
const UNKNOWN: u64 = 0xffff_ffff;

pub(super) fn walk(source: &mut dyn Source) -> Result<RetainedAudio, Error> {
    let mut kept = RetainedAudio::default();
    let total = length(source)?;
    let mut chunks = SegmentList::default();
    let mut size = 4;
    let mut at = 12;
    let mut samples = false;
    let mut parts = 0;
    while at + 8 <= total {
        parts += 1;
        if parts > limits::PARTS_MAX {
            return Err(Error::undecodable("it has too many chunks"));
        }
        let head = read_at(source, at, 8)?;
        let stated = u64::from(le_u32(&head, 4).unwrap_or(0));
        let kind = head.get(..4).unwrap_or_default();
        let endless = kind == b"data" && (stated == UNKNOWN || stated == 0);
        let length = if endless { total - at - 8 } else { stated };
        let end = at + 8 + length;
        if end > total {
            return Err(Error::truncated());
        }
        let next = (end + length % 2).min(total);
        match kind {
            b"fmt " | b"fact" | b"data" => {
                let mut head = Vec::from(kind);
                head.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
                chunks.put(head);
                chunks.copy(at + 8..end);
                chunks.zeros(length % 2);
                size += 8 + length + length % 2;
                samples |= kind == b"data";
            }
            // Padding chunks carry no information.
            b"JUNK" | b"PAD " | b"FLLR" => {}
            b"LIST" | b"id3 " | b"ID3 " | b"bext" | b"iXML" | b"_PMX" => remove(&mut kept, "tags"),
            _ => remove(&mut kept, "application data"),
        }
        at = next;
    }
    if !samples {
        return Err(Error::truncated());
    }
    let mut head = Vec::from(*b"RIFF");
    head.extend(u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes());
    head.extend(b"WAVE");
    kept.pieces.put(head);
    kept.pieces.append(chunks);
    Ok(kept)
}

fn remove(kept: &mut RetainedAudio, what: &'static str) {
    if !kept.removed.contains(&what) {
        kept.removed.push(what);
    }
}

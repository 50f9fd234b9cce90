//! PDF: counts pages and removes author, dates and producer. The file is rewritten from its objects, so any
//! bytes between or after them are removed.

use lopdf::{Document, LoadOptions, Object};

use crate::error::Error;
use crate::facts::Facts;
use crate::limits;
use crate::range_writer::SegmentList;
use crate::source::{Source, whole};

/// Minimum share of the limit for one compressed table.
const TABLE_BYTES_MIN: usize = 256 * 1024;

pub(crate) fn scan(
    source: &mut dyn Source,
    facts: &mut Facts,
) -> Result<(SegmentList, Vec<&'static str>), Error> {
    let bytes = whole(source, limits::DOCUMENT_BYTES_MAX)?;
    let end = bytes.trim_ascii_end();
    let end = end.get(..end.len() - end.iter().rev().take_while(|byte| **byte == 0).count());
    if !end.unwrap_or_default().trim_ascii_end().ends_with(b"%%EOF") {
        return Err(Error::truncated());
    }
    // Compressed tables are decompressed while loading: they share a fixed limit.
    let tables = count(&bytes, b"ObjStm") + count(&bytes, b"XRef") + 1;
    let options = LoadOptions {
        max_decompressed_size: Some((limits::DOCUMENT_TABLES_BYTES_MAX / tables).max(TABLE_BYTES_MIN)),
        ..LoadOptions::default()
    };
    if tables > limits::DOCUMENT_TABLES_BYTES_MAX / TABLE_BYTES_MIN {
        return Err(Error::undecodable("it has too many compressed tables"));
    }
    let mut document = Document::load_mem_with_options(&bytes, options)
        .map_err(|error| Error::undecodable(error.to_string()))?;
    if document.is_encrypted() {
        return Err(Error::undecodable("it is encrypted with a password"));
    }
    facts.pages = Some(document.get_pages().len() as u64).filter(|pages| *pages > 0);
    let removed = clean(&mut document);
    let mut fresh = Vec::new();
    document.save_to(&mut fresh)?;
    let mut pieces = SegmentList::default();
    pieces.put(fresh);
    Ok((pieces, removed))
}

fn clean(document: &mut Document) -> Vec<&'static str> {
    let mut removed = Vec::new();
    let mut removed_ids = Vec::new();
    if let Some(info) = document.trailer.remove(b"Info") {
        removed_ids.extend(info.as_reference().ok());
        removed.push("info");
    }
    for (id, object) in &mut document.objects {
        let dictionary = match object {
            Object::Dictionary(dictionary) => dictionary,
            Object::Stream(stream) => &mut stream.dict,
            _ => continue,
        };
        if dictionary.has_type(b"Metadata") {
            removed_ids.push(*id);
        }
        for key in [b"Metadata".as_slice(), b"PieceInfo", b"LastModified"] {
            if dictionary.remove(key).is_some() && !removed.contains(&"xmp") {
                removed.push("xmp");
            }
        }
    }
    for id in removed_ids {
        document.objects.remove(&id);
    }
    removed
}

/// Occurrences of a name in the file. Its characters may be hex-escaped.
fn count(bytes: &[u8], name: &[u8]) -> usize {
    let mut found = 0;
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == b'/') {
        rest = rest.get(at + 1..).unwrap_or_default();
        found += usize::from(spells(rest, name));
    }
    found
}

fn spells(mut text: &[u8], name: &[u8]) -> bool {
    for wanted in name {
        let (letter, length) = match text {
            [b'#', high, low, ..] => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let value = digit(high).zip(digit(low)).map(|(high, low)| high << 4 | low);
                (value.and_then(|value| u8::try_from(value).ok()), 3)
            }
            [letter, ..] => (Some(*letter), 1),
            [] => (None, 0),
        };
        if letter != Some(*wanted) {
            return false;
        }
        text = text.get(length..).unwrap_or_default();
    }
    true
}

//! PDF: pages are counted, and who made it, when, and with what is left out. The file is written anew from
//! its objects, so whatever stood between or behind them is gone.

use lopdf::{Document, LoadOptions, Object};

use crate::facts::Facts;
use crate::error::Error;
use crate::limits;
use crate::range_writer::SegmentList;
use crate::source::{Source, whole};

/// Smallest share that a compressed table gets.
const TABLE_BYTES_MIN: usize = 256 * 1024;

pub(crate) fn scan(source: &mut dyn Source, facts: &mut Facts) -> Result<(SegmentList, Vec<&'static str>), Error> {
    let bytes = whole(source, limits::DOCUMENT_BYTES_MAX)?;
    let end = bytes.trim_ascii_end();
    let end = end.get(..end.len() - end.iter().rev().take_while(|byte| **byte == 0).count());
    if !end.unwrap_or_default().trim_ascii_end().ends_with(b"%%EOF") {
        return Err(Error::truncated());
    }
    // Tables that are compressed are unfolded while loading: together they get a fixed amount of room.
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
        return Err(Error::undecodable("it is locked with a password"));
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
    let mut goes = Vec::new();
    if let Some(info) = document.trailer.remove(b"Info") {
        goes.extend(info.as_reference().ok());
        removed.push("info");
    }
    for (id, object) in &mut document.objects {
        let dictionary = match object {
            Object::Dictionary(dictionary) => dictionary,
            Object::Stream(stream) => &mut stream.dict,
            _ => continue,
        };
        if dictionary.has_type(b"Metadata") {
            goes.push(*id);
        }
        for key in [b"Metadata".as_slice(), b"PieceInfo", b"LastModified"] {
            if dictionary.remove(key).is_some() && !removed.contains(&"xmp") {
                removed.push("xmp");
            }
        }
    }
    for id in goes {
        document.objects.remove(&id);
    }
    removed
}

/// How often a name stands in the file. Its letters may be written as numbers.
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

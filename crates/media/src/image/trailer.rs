//! Bytes after the end of an image. Phones append a second image or a video there: it is removed. A
//! program, an archive or a web page makes the file a polyglot, which is refused.

use super::ContainerScan;
use crate::error::Error;

const FOREIGN: &[&[u8]] = &[
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"Rar!",
    b"7z\xbc\xaf",
    b"MZ\x90",
    b"\x7fELF",
    b"%PDF-",
    b"<script",
    b"<html",
    b"<!DOCTYPE",
    b"<?php",
    b"#!/",
];

pub(super) fn check(bytes: &[u8], walk: &mut ContainerScan) -> Result<(), Error> {
    let end = usize::try_from(walk.end).unwrap_or(usize::MAX);
    let rest = bytes.get(end..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(());
    }
    let foreign = |magic: &&[u8]| {
        rest.windows(magic.len())
            .any(|window| window.eq_ignore_ascii_case(magic))
    };
    if FOREIGN.iter().any(foreign) {
        return Err(Error::undecodable("another file follows the end of the image"));
    }
    walk.remove("trailer");
    Ok(())
}

//! What stands behind the end of a picture. Phones put a second picture or a film there: it is cut off.
//! A program, an archive or a page there makes the file two files in one, and it is refused.

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
        return Err(Error::undecodable(
            "another file stands behind the end of this one",
        ));
    }
    walk.remove("trailer");
    Ok(())
}

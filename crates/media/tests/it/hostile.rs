//! Hostile bytes: truncated or changed anywhere, polyglots, decompression bombs. They are refused with a
//! code; nothing panics or allocates without bound.

use std::io::Write;

use media::{Bounds, Declared};
use proptest::prelude::*;

use crate::samples::{ALL, declared, mime, prepare, read};

/// Formats in which truncation cannot be detected, because they are a sequence of frames.
fn ends_anywhere(name: &str) -> bool {
    name.ends_with(".mp3") || name == "live.webm"
}

#[test]
fn truncated_file_is_refused_at_any_length() {
    for name in ALL.iter().filter(|name| !ends_anywhere(name)) {
        let bytes = read(name);
        let step = (bytes.len() / 60).max(1);
        for length in (0..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
            let result = prepare(&bytes[..length], &declared(name), &Bounds::default());
            // A video may end in free space; a document in a line break.
            let whole = result.is_ok() && bytes.len() - length <= 2;
            let code = result.as_ref().err().map(media::Error::code);
            assert!(
                whole || matches!(code, Some("E1013" | "E1014")),
                "{name} at {length}: {code:?}"
            );
        }
    }
}

#[test]
fn polyglot_files_are_refused() {
    for (name, other) in [
        ("photo.jpg", &b"PK\x03\x04 an archive"[..]),
        ("text.png", b"<script>alert(1)</script>"),
        ("still.gif", b"<?php system($_GET['c']); ?>"),
        ("still.webp", b"%PDF-1.7 a document"),
    ] {
        let bytes = [&read(name), other].concat();
        let fault = prepare(&bytes, &declared(name), &Bounds::default()).unwrap_err();
        assert_eq!(fault.code(), "E1013", "{name}");
    }
    // A script in the header of an image.
    let script = b"GIF89a/*\0\0\0*/=1;alert(1);//";
    assert_eq!(
        prepare(script, &Declared::default(), &Bounds::default())
            .unwrap_err()
            .code(),
        "E1013"
    );
    // The trailer that phones append to an image is removed.
    let bytes = [read("photo.jpg"), vec![7; 5_000]].concat();
    let (prepared, out) = prepare(&bytes, &declared("photo.jpg"), &Bounds::default()).unwrap();
    assert!(prepared.removed.contains(&"trailer"));
    assert!(out.ends_with(&[0xff, 0xd9]));
}

/// A document whose tables decompress to gigabytes.
#[test]
fn decompression_bomb_in_pdf_is_refused() {
    let mut deflated = flate();
    let stream = |body: &[u8]| {
        let mut bytes =
            Vec::from(*b"%PDF-1.5\n1 0 obj\n<</Type/ObjStm/N 1/First 4/Filter/FlateDecode/Length ");
        write!(bytes, "{}>>\nstream\n", body.len()).unwrap();
        bytes.extend(body);
        bytes.extend(b"\nendstream\nendobj\ntrailer\n<</Root 1 0 R/Size 2>>\nstartxref\n9\n%%EOF\n");
        bytes
    };
    let bomb = stream(&deflated);
    assert_eq!(
        prepare(&bomb, &declared("a.pdf"), &Bounds::default())
            .unwrap_err()
            .code(),
        "E1013"
    );
    deflated.truncate(100);
    assert_eq!(
        prepare(&stream(&deflated), &declared("a.pdf"), &Bounds::default())
            .unwrap_err()
            .code(),
        "E1013"
    );
}

/// 512 MiB of zeros, deflated with python, which other tests require too.
fn flate() -> Vec<u8> {
    let code = "import sys,zlib\nc=zlib.compressobj(9)\nw=sys.stdout.buffer.write\nz=bytes(1<<20)\nfor _ in range(512): w(c.compress(z))\nw(c.flush())";
    std::process::Command::new("python3")
        .args(["-c", code])
        .output()
        .unwrap()
        .stdout
}

fn any_sample() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(ALL)
}

/// Few cases unless the environment asks for many: one case decodes a picture.
fn config() -> ProptestConfig {
    let asked = ProptestConfig::default().cases;
    ProptestConfig {
        max_shrink_iters: 20,
        cases: if asked > 256 { asked } else { 48 },
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// Any change gives a result or an error, and prepared media has the declared type.
    #[test]
    fn changed_bytes_are_accepted_or_refused(
        name in any_sample(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        early in any::<bool>(),
    ) {
        let mut bytes = read(name);
        let room = if early { bytes.len().min(400) } else { bytes.len() };
        for (at, byte) in changes {
            bytes[at.index(room)] = byte;
        }
        match prepare(&bytes, &declared(name), &Bounds::default()) {
            Ok((prepared, out)) => {
                prop_assert_eq!(prepared.output.format.mime(), mime(name));
                prop_assert_eq!(prepared.output.size_bytes, out.len() as u64);
            }
            Err(fault) => prop_assert!(fault.code().starts_with("E10"), "{}: {}", fault.code(), fault),
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused_with_a_code(
        name in any_sample(),
        head in 0..64_usize,
        tail in prop::collection::vec(any::<u8>(), 0..4_000),
    ) {
        let mut bytes = read(name);
        bytes.truncate(head);
        bytes.extend(tail);
        if let Err(fault) = prepare(&bytes, &Declared::default(), &Bounds::default()) {
            prop_assert!(fault.code().starts_with("E10"), "{}: {}", fault.code(), fault);
        }
    }
}

/// All parsers of this crate on fuzzed bytes.
#[test]
fn fuzz() {
    bolero::check!()
        .with_type::<(u8, Vec<u8>)>()
        .for_each(|(choice, tail)| {
            let heads: [&[u8]; 10] = [
                b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0",
                b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR",
                b"GIF89a\x10\0\x10\0\0\0\0",
                b"RIFF\x40\0\0\0WEBPVP8X\x0a\0\0\0",
                b"RIFF\x40\0\0\0WAVEfmt \x10\0\0\0",
                b"OggS\0\x02",
                b"ID3\x04\0\0\0\0\0\0",
                b"\0\0\0\x10ftypisom\0\0\0\0\0\0\0\x40moov",
                b"\x1a\x45\xdf\xa3\x84\x42\x82\x81w\x18\x53\x80\x67",
                b"%PDF-1.4\n%%EOF\n",
            ];
            let head = heads[usize::from(*choice) % heads.len()];
            let bytes = [head, tail].concat();
            if let Err(fault) = prepare(&bytes, &Declared::default(), &Bounds::default()) {
                assert!(fault.code().starts_with("E10"), "{fault}");
            }
        });
}

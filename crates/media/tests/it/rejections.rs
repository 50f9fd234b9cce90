//! One rejection per code, with its documented details.

use ir::media::Checksum;
use media::{Bounds, Declared, Error};

use crate::samples::{declared, prepare, read};

fn refusal(bytes: &[u8], declared: &Declared, bounds: &Bounds) -> Error {
    prepare(bytes, declared, bounds).unwrap_err()
}

fn mime_only(mime: &str) -> Declared {
    Declared {
        mime: Some(String::from(mime)),
        checksum: None,
    }
}

/// A PNG with the given dimensions and almost no data.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::from(*b"\x89PNG\r\n\x1a\n");
    let mut header = Vec::new();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    header.extend([1, 0, 0, 0, 0]);
    for (kind, body) in [
        (b"IHDR", header.as_slice()),
        (b"IDAT", b"\x78\x9c\x03\0\0\0\0\x01"),
        (b"IEND", b""),
    ] {
        bytes.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
        let from = bytes.len();
        bytes.extend(kind);
        bytes.extend(body);
        bytes.extend(crc32fast::hash(&bytes[from..]).to_be_bytes());
    }
    bytes
}

#[test]
fn unaccepted_types_are_refused() {
    let bounds = Bounds::default();
    for mime in [
        "image/tiff",
        "image/svg+xml",
        "image/heic",
        "application/zip",
        "text/html",
        "video/x-matroska",
    ] {
        let fault = refusal(&read("photo.jpg"), &mime_only(mime), &bounds);
        assert_eq!(fault.code(), "E1010", "{mime}");
        assert_eq!(fault.details()["media_type"], mime);
    }
    for (bytes, mime) in [
        (&b"<svg xmlns='http://www.w3.org/2000/svg'/>"[..], "image/svg+xml"),
        (b"II*\0........", "image/tiff"),
        (b"PK\x03\x04.........", "application/zip"),
        (b"\0\0\0\x18ftypheic....", "image/heic"),
    ] {
        let fault = refusal(bytes, &Declared::default(), &bounds);
        assert_eq!(
            (fault.code(), &fault.details()["media_type"]),
            ("E1010", &mime.into())
        );
    }
    assert_eq!(refusal(b"", &Declared::default(), &bounds).code(), "E1010");
}

#[test]
fn size_duration_and_pages_over_limit_are_refused() {
    let bounds = Bounds {
        image_bytes: 100,
        audio_ms: 1_000,
        pages: 2,
        ..Bounds::default()
    };
    for (name, limit) in [
        ("photo.jpg", "size"),
        ("vbr.mp3", "duration"),
        ("live.webm", "none"),
        ("three.pdf", "pages"),
    ] {
        match prepare(&read(name), &declared(name), &bounds) {
            Ok(_) => assert_eq!(limit, "none"),
            Err(fault) => {
                assert_eq!(fault.code(), "E1011", "{name}");
                let details = fault.details();
                assert_eq!(details["limit"], limit);
                assert!(details["actual"].as_u64() > details["allowed"].as_u64());
            }
        }
    }
}

#[test]
fn type_mismatch_is_refused() {
    let bounds = Bounds::default();
    for (name, mime, detected) in [
        ("text.png", "image/jpeg", "image/png"),
        ("photo.jpg", "image/png", "image/jpeg"),
        ("three.pdf", "image/png", "application/pdf"),
        ("tagged.mov", "video/mp4", "video/quicktime"),
        ("tagged.mp4", "audio/mp4", "video/mp4"),
        ("sound.weba", "video/webm", "audio/webm"),
        ("tagged.webp", "audio/wav", "image/webp"),
    ] {
        let fault = refusal(&read(name), &mime_only(mime), &bounds);
        assert_eq!(fault.code(), "E1014", "{name}");
        let details = fault.details();
        assert_eq!(
            (&details["declared_type"], &details["detected_type"]),
            (&mime.into(), &detected.into())
        );
        assert!(!details["magic_bytes"].as_str().unwrap().is_empty());
    }
    let unknown = refusal(b"no picture at all", &mime_only("image/png"), &bounds);
    assert!(unknown.details()["detected_type"].is_null());
}

#[test]
fn images_out_of_pixel_bounds_are_refused() {
    let bounds = Bounds::default();
    for (width, height, code) in [
        (8_193, 10, "E1015"),
        (1, 1, "E1016"),
        (9, 4_000, "E1016"),
        (60_000, 60_000, "E1015"),
        (u32::MAX >> 1, u32::MAX >> 1, "E1015"),
    ] {
        let fault = refusal(&png(width, height), &mime_only("image/png"), &bounds);
        assert_eq!(fault.code(), code, "{width}x{height}: {fault}");
    }
    let many = Bounds {
        pixels_max: 1_000_000,
        ..Bounds::default()
    };
    let fault = refusal(&png(1_001, 1_000), &mime_only("image/png"), &many);
    assert_eq!(
        (fault.code(), fault.details()["pixels"].as_u64()),
        ("E1017", Some(1_001_000))
    );
}

#[test]
fn checksum_is_verified() {
    let bytes = read("photo.jpg");
    let checksum = |algorithm: &str, value: &str| Declared {
        mime: None,
        checksum: Some(Checksum {
            algorithm: String::from(algorithm),
            value: String::from(value),
        }),
    };
    let right = |algorithm: &str, tool: &str| {
        let output = testkit::tools::run(tool, &[crate::samples::path("photo.jpg").to_str().unwrap()]);
        checksum(algorithm, &output.split(' ').next().unwrap().to_uppercase())
    };
    let bounds = Bounds::default();
    prepare(&bytes, &right("sha256", "sha256sum"), &bounds).unwrap();
    prepare(&bytes, &right("md5", "md5sum"), &bounds).unwrap();
    let crc32 = format!("{:08x}", crc32fast::hash(&bytes));
    prepare(&bytes, &checksum("crc32", &crc32), &bounds).unwrap();
    for (algorithm, digits) in [("sha256", 64), ("md5", 32), ("crc32", 8)] {
        let fault = refusal(&bytes, &checksum(algorithm, &"0".repeat(digits)), &bounds);
        assert_eq!(fault.code(), "E1020");
        assert_eq!(fault.details()["actual"].as_str().unwrap().len(), digits);
    }
}

//! Prepared media contains no personal metadata and the same image or sound. Verified with exiftool and
//! ffmpeg.

use std::fs;

use testkit::tools::run;

use crate::samples::{ALL, SECRETS, mime, path, prepare_sample, read};

/// Groups and tags that describe the image itself, not its author.
const HARMLESS: &[&str] = &[
    "ExifTool",
    "File",
    "System",
    "Composite",
    "JFIF",
    "ICC-header",
    "ICC_Profile",
    "ICC-view",
    "ICC-meas",
    "RIFF",
    "PNG",
    "PNG-pHYs",
    "GIF",
    "Opus",
    "Vorbis",
    "Theora",
    "MPEG",
    "Track1",
    "Track2",
    "Track3",
    "QuickTime",
    "Matroska",
    "PDF",
    "Info",
    "Adobe",
];

fn write(name: &str) -> (tempfile::TempDir, String) {
    let (_, out) = prepare_sample(name);
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join(name);
    fs::write(&target, out).unwrap();
    let target = String::from(target.to_str().unwrap());
    (folder, target)
}

#[test]
fn samples_contain_personal_metadata() {
    let described = [
        "photo.jpg",
        "text.png",
        "tagged.webp",
        "tagged.mp3",
        "tagged.mp4",
        "tagged.mov",
        "three.pdf",
    ];
    for name in described {
        let output = run("exiftool", &["-a", "-u", "-G1", path(name).to_str().unwrap()]);
        assert!(
            SECRETS.iter().any(|secret| output.contains(secret)),
            "{name}: {output}"
        );
    }
}

#[test]
fn personal_metadata_is_removed() {
    for name in ALL {
        let (_folder, target) = write(name);
        let bytes = fs::read(&target).unwrap();
        for secret in SECRETS {
            let found = bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            assert!(!found, "{name} still contains {secret}");
        }
        let output = run(
            "exiftool",
            &[
                "-a",
                "-u",
                "-ee",
                "-G1",
                "-s",
                "-api",
                "LargeFileSupport=1",
                &target,
            ],
        );
        for line in output.lines() {
            let group = line.trim_start_matches('[').split(']').next().unwrap_or_default();
            let upright = line.contains("Orientation") || line.contains("ExifByteOrder");
            assert!(HARMLESS.contains(&group) || upright, "{name}: {line}");
            let personal = [
                "GPS",
                "Artist",
                "Author",
                "Title",
                "Comment ",
                "Serial",
                "City",
                "Copyright ",
            ];
            let tag = line.split(']').nth(1).unwrap_or_default().trim_start();
            assert!(
                !personal.iter().any(|word| tag.starts_with(word)),
                "{name}: {line}"
            );
            let dated = ["CreateDate", "ModifyDate", "MediaCreateDate", "TrackCreateDate"];
            let is_date = dated.iter().any(|word| tag.starts_with(word));
            assert!(!is_date || line.contains("0000:00:00"), "{name}: {line}");
        }
        assert!(!output.contains("Warning"), "{name}: {output}");
    }
}

/// Decoding the file before and after gives identical frames.
#[test]
fn decoded_frames_are_unchanged() {
    let digest = |file: &str, first_only: bool| {
        let frames: &[&str] = if first_only { &["-frames:v", "1"] } else { &[] };
        let all = [
            &["-v", "error", "-i", file],
            frames,
            &["-map", "0", "-map", "-0:d?", "-f", "streamhash", "-"],
        ]
        .concat();
        run("ffmpeg", &all)
    };
    for name in ALL {
        // ffmpeg reads neither PDF nor animated WebP; the latter is re-encoded.
        if name.ends_with(".pdf") || *name == "animated.webp" {
            continue;
        }
        let (_folder, target) = write(name);
        let still = mime(name).starts_with("image");
        let before = digest(path(name).to_str().unwrap(), still);
        assert_eq!(before, digest(&target, still), "{name}");
    }
}

#[test]
fn orientation_is_retained() {
    for (name, orientation) in [("turned.jpg", "6"), ("text.png", "8"), ("tagged.webp", "6")] {
        let (_folder, target) = write(name);
        let output = run("exiftool", &["-n", "-s3", "-Orientation", &target]);
        assert_eq!(output.trim(), orientation, "{name}");
    }
}

#[test]
fn cleaned_pdf_opens_with_all_pages() {
    let (_folder, target) = write("three.pdf");
    let output = run("pdfinfo", &[&target]);
    assert!(
        output
            .lines()
            .any(|line| line.starts_with("Pages:") && line.ends_with('3')),
        "{output}"
    );
    assert!(run("pdftotext", &[&target, "-"]).contains("Hello"));
}

#[test]
fn cleaning_is_idempotent() {
    for name in ALL {
        let (_, once) = prepare_sample(name);
        let bounds = media::Bounds::default();
        let (prepared, twice) =
            crate::samples::prepare(&once, &crate::samples::declared(name), &bounds).unwrap();
        assert!(prepared.adaptations.is_empty(), "{name}");
        if !name.ends_with(".pdf") {
            assert_eq!(once, twice, "{name}");
        }
        assert!(!read(name).is_empty());
    }
}

//! What goes on carries nothing of its maker, shows the same picture and plays the same sound. exiftool
//! and ffmpeg are the judges.

use std::fs;

use testkit::tools::run;

use crate::samples::{ALL, SECRETS, mime, path, prepare_sample, read};

/// Groups and tags that describe the picture itself, not its maker.
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
fn samples_do_carry_what_is_to_be_removed() {
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
        let said = run("exiftool", &["-a", "-u", "-G1", path(name).to_str().unwrap()]);
        assert!(
            SECRETS.iter().any(|secret| said.contains(secret)),
            "{name}: {said}"
        );
    }
}

#[test]
fn nothing_of_the_maker_goes_on() {
    for name in ALL {
        let (_folder, target) = write(name);
        let bytes = fs::read(&target).unwrap();
        for secret in SECRETS {
            let found = bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            assert!(!found, "{name} still says {secret}");
        }
        let said = run(
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
        for line in said.lines() {
            let group = line.trim_start_matches('[').split(']').next().unwrap_or_default();
            let upright = line.contains("Orientation") || line.contains("ExifByteOrder");
            assert!(HARMLESS.contains(&group) || upright, "{name}: {line}");
            let told = [
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
            assert!(!told.iter().any(|word| tag.starts_with(word)), "{name}: {line}");
            let dated = ["CreateDate", "ModifyDate", "MediaCreateDate", "TrackCreateDate"];
            let is_date = dated.iter().any(|word| tag.starts_with(word));
            assert!(!is_date || line.contains("0000:00:00"), "{name}: {line}");
        }
        assert!(!said.contains("Warning"), "{name}: {said}");
    }
}

/// Decoding the file before and after gives the same, bit by bit.
#[test]
fn pictures_and_sound_are_untouched() {
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
        // ffmpeg reads neither PDF nor moving WebP; the latter is redrawn.
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
fn which_way_up_is_kept() {
    for (name, orientation) in [("turned.jpg", "6"), ("text.png", "8"), ("tagged.webp", "6")] {
        let (_folder, target) = write(name);
        let said = run("exiftool", &["-n", "-s3", "-Orientation", &target]);
        assert_eq!(said.trim(), orientation, "{name}");
    }
}

#[test]
fn a_clean_document_opens_and_has_its_pages() {
    let (_folder, target) = write("three.pdf");
    let said = run("pdfinfo", &[&target]);
    assert!(
        said.lines()
            .any(|line| line.starts_with("Pages:") && line.ends_with('3')),
        "{said}"
    );
    assert!(run("pdftotext", &[&target, "-"]).contains("Hello"));
}

#[test]
fn cleaning_a_clean_file_changes_nothing_more() {
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

//! Facts of the samples, compared with the parameters they were made with.

use media::{Bounds, Declared};

use crate::samples::{ALL, declared, mime, prepare, prepare_sample, read};

#[test]
fn samples_are_detected_as_their_format() {
    for name in ALL {
        let (prepared, out) = prepare_sample(name);
        assert_eq!(prepared.input.format.mime(), mime(name), "{name}");
        assert_eq!(prepared.input.size_bytes, read(name).len() as u64, "{name}");
        assert_eq!(prepared.output.size_bytes, out.len() as u64, "{name}");
    }
}

#[test]
fn undeclared_type_is_detected() {
    for name in ALL {
        let (prepared, _) = prepare(&read(name), &Declared::default(), &Bounds::default()).unwrap();
        assert_eq!(prepared.input.format.mime(), mime(name), "{name}");
    }
}

#[test]
fn durations_are_measured() {
    let timed = ALL
        .iter()
        .filter(|name| !mime(name).starts_with("image") && !mime(name).ends_with("pdf"));
    for name in timed {
        let (prepared, _) = prepare_sample(name);
        let ms = prepared.input.duration_ms.unwrap();
        assert!((2_850..=3_200).contains(&ms), "{name}: {ms}");
    }
}

#[test]
fn sizes_frames_and_pages_are_counted() {
    for (name, width, height, frames) in [
        ("photo.jpg", 320, 200, 1),
        ("turned.jpg", 200, 320, 1),
        ("text.png", 200, 320, 1),
        ("tagged.webp", 200, 320, 1),
        ("animated.gif", 320, 200, 30),
        ("animated.webp", 320, 200, 30),
        ("animated.png", 320, 200, 30),
    ] {
        let (prepared, _) = prepare_sample(name);
        let facts = prepared.input;
        assert_eq!((facts.width, facts.height), (Some(width), Some(height)), "{name}");
        assert_eq!(facts.frames, Some(frames), "{name}");
    }
    for name in [
        "tagged.mp4",
        "fragments.mp4",
        "tagged.mov",
        "tagged.webm",
        "live.webm",
    ] {
        let (prepared, _) = prepare_sample(name);
        assert_eq!(
            (prepared.input.width, prepared.input.height),
            (Some(320), Some(200)),
            "{name}"
        );
    }
    assert_eq!(prepare_sample("three.pdf").0.input.pages, Some(3));
    assert_eq!(prepare_sample("tagged.wav").0.input.sample_rate_hz, Some(44_100));
}

/// The header can claim any duration; the samples are counted.
#[test]
fn duration_is_measured_not_read_from_header() {
    let mut bytes = read("tagged.mp4");
    let at = bytes.windows(4).position(|window| window == b"mvhd").unwrap();
    bytes[at + 20..at + 24].copy_from_slice(&1_u32.to_be_bytes());
    let bounds = Bounds {
        video_ms: 1_000,
        ..Bounds::default()
    };
    let fault = prepare(&bytes, &declared("tagged.mp4"), &bounds).unwrap_err();
    assert_eq!(fault.code(), "E1011");
    assert_eq!(fault.details()["limit"], "duration");
}

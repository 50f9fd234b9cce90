//! Images adapted to the bounds, and the recorded adaptations.

use media::{Action, Bounds, Declared, Format, Oversize};

use crate::samples::{declared, prepare, prepare_sample, read};

fn actions(prepared: &media::Prepared) -> Vec<Action> {
    prepared.adaptations.iter().map(|one| one.action).collect()
}

#[test]
fn animation_is_reduced_to_first_frame() {
    for name in ["animated.gif", "animated.webp", "animated.png"] {
        let (prepared, out) = prepare_sample(name);
        assert_eq!(actions(&prepared), [Action::FirstFrame], "{name}");
        assert_eq!(prepared.output.frames, Some(1), "{name}");
        let picture = image::load_from_memory(&out).unwrap();
        assert_eq!((picture.width(), picture.height()), (320, 200), "{name}");
        assert!(out.len() < read(name).len(), "{name}");
    }
}

#[test]
fn oversize_image_is_refused_or_downscaled_by_policy() {
    let small = Bounds {
        side_max: 100,
        ..Bounds::default()
    };
    for name in [
        "photo.jpg",
        "turned.jpg",
        "text.png",
        "tagged.webp",
        "animated.gif",
    ] {
        let fault = prepare(&read(name), &declared(name), &small).unwrap_err();
        assert_eq!(fault.code(), "E1015", "{name}");
        let scaling = Bounds {
            oversize: Oversize::Downscale,
            ..small.clone()
        };
        let (prepared, out) = prepare(&read(name), &declared(name), &scaling).unwrap();
        assert!(actions(&prepared).contains(&Action::Downscaled), "{name}");
        let picture = image::load_from_memory(&out).unwrap();
        let sides = (u64::from(picture.width()), u64::from(picture.height()));
        assert_eq!(
            (prepared.output.width, prepared.output.height),
            (Some(sides.0), Some(sides.1)),
            "{name}"
        );
        assert_eq!(sides.0.max(sides.1), 100, "{name}");
        // Rotated images are upright now.
        let tall = prepared.input.height > prepared.input.width;
        assert_eq!(sides.1 > sides.0, tall, "{name}");
    }
}

#[test]
fn unaccepted_format_is_refused_or_converted_by_policy() {
    let strict = Bounds {
        formats: vec![Format::Png],
        ..Bounds::default()
    };
    let lenient = Bounds {
        normalise: true,
        ..strict.clone()
    };
    for name in ["photo.jpg", "still.webp", "animated.gif"] {
        let fault = prepare(&read(name), &declared(name), &strict).unwrap_err();
        assert_eq!(fault.code(), "E1010", "{name}");
        let (prepared, out) = prepare(&read(name), &declared(name), &lenient).unwrap();
        assert!(actions(&prepared).contains(&Action::Converted), "{name}");
        assert_eq!(prepared.output.format, Format::Png, "{name}");
        assert!(out.starts_with(b"\x89PNG"), "{name}");
    }
    // Only images are converted.
    let sound = prepare(&read("tagged.mp3"), &Declared::default(), &lenient).unwrap_err();
    assert_eq!(sound.code(), "E1010");
}

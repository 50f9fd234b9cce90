//! Samples made with ffmpeg, exiftool and other tools, once per test run.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use media::{Bounds, Declared, Error, Prepared};
use tempfile::TempDir;
use testkit::tools::{require, run};

/// Words that prepared media must not contain.
pub(crate) const SECRETS: &[&str] = &["Jane Roe", "SN-4711", "Lima", "48.858"];

static FOLDER: LazyLock<TempDir> = LazyLock::new(make);

pub(crate) fn path(name: &str) -> PathBuf {
    FOLDER.path().join(name)
}

pub(crate) fn read(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap()
}

/// The type of a sample, by its file extension.
pub(crate) fn mime(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap() {
        "jpg" => "image/jpeg",
        "png" => "image/png",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "ogg" | "opus" => "audio/ogg",
        "weba" => "audio/webm",
        "m4a" => "audio/mp4",
        "mp4" => "video/mp4",
        "mov" => "video/quicktime",
        "webm" => "video/webm",
        "pdf" => "application/pdf",
        other => panic!("{other}"),
    }
}

pub(crate) const ALL: &[&str] = &[
    "photo.jpg",
    "turned.jpg",
    "progressive.jpg",
    "text.png",
    "animated.png",
    "still.webp",
    "tagged.webp",
    "animated.webp",
    "animated.gif",
    "still.gif",
    "tagged.mp3",
    "vbr.mp3",
    "tagged.wav",
    "vorbis.ogg",
    "opus.opus",
    "sound.weba",
    "tagged.m4a",
    "tagged.mp4",
    "fragments.mp4",
    "tagged.mov",
    "tagged.webm",
    "live.webm",
    "three.pdf",
];

pub(crate) fn declared(name: &str) -> Declared {
    Declared {
        mime: Some(String::from(mime(name))),
        checksum: None,
    }
}

/// The prepared media and its bytes.
pub(crate) fn prepare(
    bytes: &[u8],
    declared: &Declared,
    bounds: &Bounds,
) -> Result<(Prepared, Vec<u8>), Error> {
    let mut out = Vec::new();
    let prepared = media::prepare(&mut std::io::Cursor::new(bytes), declared, bounds, &mut out)?;
    Ok((prepared, out))
}

pub(crate) fn prepare_sample(name: &str) -> (Prepared, Vec<u8>) {
    prepare(&read(name), &declared(name), &Bounds::default())
        .unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

#[expect(
    clippy::too_many_lines,
    reason = "a list of commands, one sample after the other"
)]
fn make() -> TempDir {
    require(&[
        ("ffmpeg", "ffmpeg"),
        ("exiftool", "libimage-exiftool-perl"),
        ("pdfinfo", "poppler-utils"),
        ("webpmux", "webp"),
        ("ps2pdf", "ghostscript"),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| String::from(folder.path().join(name).to_str().unwrap());
    let picture = "testsrc2=size=320x200:rate=1:duration=1";
    let film = "testsrc2=size=320x200:rate=10:duration=3";
    let tone = "sine=frequency=440:sample_rate=44100:duration=3";
    let tags = [
        "-metadata",
        "artist=Jane Roe",
        "-metadata",
        "title=Lima",
        "-metadata",
        "location=+48.8584+002.2945/",
    ];
    let ffmpeg = |arguments: &[&str], out: &str| {
        let out = at(out);
        let all = [&["-v", "error", "-y"], arguments, &[out.as_str()]].concat();
        run("ffmpeg", &all);
    };
    let exif = |name: &str, more: &[&str]| {
        let target = at(name);
        let usual = [
            "-q",
            "-q",
            "-overwrite_original",
            "-Artist=Jane Roe",
            "-XMP:City=Lima",
        ];
        run("exiftool", &[&usual, more, &[target.as_str()]].concat());
    };
    let place = [
        "-GPSLatitude=48.8584",
        "-GPSLatitudeRef=N",
        "-GPSLongitude=2.2945",
        "-GPSLongitudeRef=E",
    ];
    ffmpeg(&["-f", "lavfi", "-i", picture, "-frames:v", "1"], "photo.jpg");
    let camera = ["-SerialNumber=SN-4711", "-IPTC:City=Lima", "-Comment=Jane Roe"];
    exif("photo.jpg", &[place.as_slice(), &camera].concat());
    fs::copy(at("photo.jpg"), at("turned.jpg")).unwrap();
    exif("turned.jpg", &["-n", "-Orientation=6"]);
    ffmpeg(&["-f", "lavfi", "-i", picture, "-frames:v", "1"], "text.png");
    exif(
        "text.png",
        &[
            place.as_slice(),
            &["-n", "-Orientation=8", "-PNG:Comment=Jane Roe"],
        ]
        .concat(),
    );
    ffmpeg(
        &["-f", "lavfi", "-i", film, "-plays", "0", "-f", "apng"],
        "animated.png",
    );
    ffmpeg(
        &["-f", "lavfi", "-i", picture, "-frames:v", "1", "-c:v", "libwebp"],
        "still.webp",
    );
    fs::copy(at("still.webp"), at("tagged.webp")).unwrap();
    exif(
        "tagged.webp",
        &[place.as_slice(), &["-n", "-Orientation=6"]].concat(),
    );
    ffmpeg(
        &["-f", "lavfi", "-i", film, "-c:v", "libwebp_anim", "-loop", "0"],
        "animated.webp",
    );
    ffmpeg(&["-f", "lavfi", "-i", film], "animated.gif");
    exif("animated.gif", &["-Comment=Jane Roe"]);
    ffmpeg(&["-f", "lavfi", "-i", picture, "-frames:v", "1"], "still.gif");
    progressive(folder.path());
    let sound = |more: &[&str], out: &str| {
        let all = [&["-f", "lavfi", "-i", tone], tags.as_slice(), more].concat();
        ffmpeg(&all, out);
    };
    sound(&["-write_id3v1", "1"], "tagged.mp3");
    sound(&["-q:a", "5", "-write_xing", "0"], "vbr.mp3");
    sound(&[], "tagged.wav");
    sound(&["-c:a", "libvorbis"], "vorbis.ogg");
    sound(&["-c:a", "libopus", "-f", "ogg"], "opus.opus");
    sound(&["-c:a", "libopus", "-f", "webm"], "sound.weba");
    sound(&["-c:a", "aac"], "tagged.m4a");
    let moving = |more: &[&str], out: &str| {
        let both = [
            "-f", "lavfi", "-i", film, "-f", "lavfi", "-i", tone, "-pix_fmt", "yuv420p",
        ];
        ffmpeg(&[both.as_slice(), &tags, more].concat(), out);
    };
    moving(&["-movflags", "use_metadata_tags"], "tagged.mp4");
    exif("tagged.mp4", &place);
    moving(&["-movflags", "frag_keyframe+empty_moov"], "fragments.mp4");
    moving(&[], "tagged.mov");
    exif("tagged.mov", &place);
    moving(
        &["-c:v", "libvpx", "-c:a", "libopus", "-deadline", "realtime"],
        "tagged.webm",
    );
    moving(
        &[
            "-c:v",
            "libvpx",
            "-c:a",
            "libopus",
            "-deadline",
            "realtime",
            "-live",
            "1",
        ],
        "live.webm",
    );
    document(folder.path());
    exif("three.pdf", &["-Author=Jane Roe", "-Title=Lima"]);
    folder
}

fn progressive(folder: &std::path::Path) {
    let mut picture = image::RgbImage::new(64, 48);
    for (x, y, pixel) in picture.enumerate_pixels_mut() {
        *pixel = image::Rgb([x as u8 * 4, y as u8 * 4, 128]);
    }
    picture.save(folder.join("progressive.jpg")).unwrap();
}

/// Three pages, made from PostScript.
fn document(folder: &std::path::Path) {
    let page = "/Helvetica findfont 24 scalefont setfont 72 720 moveto (Hello) show showpage\n";
    fs::write(folder.join("three.ps"), format!("%!PS\n{}", page.repeat(3))).unwrap();
    let at = |name: &str| String::from(folder.join(name).to_str().unwrap());
    run("ps2pdf", &[&at("three.ps"), &at("three.pdf")]);
}

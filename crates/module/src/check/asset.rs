//! Asset rules: files that tests refer to exist, sizes are within the limit of their kind, and contents match
//! the file extension.

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Location, Rule};
use crate::document::{EntryPart, join};
use crate::file_map::{self, Entry};
use crate::load::LoadContext;

const MIB: f64 = 1024.0 * 1024.0;

pub(super) fn check(reading: &mut LoadContext<'_>) {
    let mut found = Vec::new();
    if let Some(module) = &reading.module {
        let limits = &module.manifest.modalities.constraints;
        for asset in &module.assets {
            let limit = match kind(&asset.path) {
                Some(Kind::Image) => limits.max_image_size_mb,
                Some(Kind::Audio) => limits.max_audio_size_mb,
                Some(Kind::Video) => limits.max_video_size_mb,
                Some(Kind::Document) => limits.max_document_size_mb,
                None => continue,
            };
            // File sizes are far below the integers that a double represents exactly.
            #[expect(clippy::cast_precision_loss, reason = "compared with a limit in MiB")]
            let size = asset.size_bytes as f64 / MIB;
            if size > limit {
                let message = format!(
                    "`{}` has {size:.1} MiB; the limit of its kind is {limit} MiB",
                    asset.path
                );
                let diagnostic =
                    Diagnostic::new(Rule::ASSET_TOO_LARGE, message).at(Location::file(&asset.path));
                found.push(diagnostic.hint("shrink it, or raise the limit under modalities.constraints"));
            }
        }
    }
    found.extend(
        reading
            .files
            .iter()
            .filter_map(|(path, entry)| mismatch(path, entry)),
    );
    reading.report.extend(found);
}

/// An asset whose first bytes belong to another type than its extension.
fn mismatch(path: &str, entry: &Entry) -> Option<Diagnostic> {
    let Entry::Listed { head, .. } = entry else {
        return None;
    };
    let named = path
        .rsplit_once('.')
        .and_then(|(_, ending)| type_of_name(ending))?;
    let found = type_of_bytes(head);
    if head.is_empty() || found == Some(named) {
        return None;
    }
    let (message, hint) = match found {
        Some(found) => (
            format!("`{path}` contains {found}, not {named}"),
            String::from("rename the file, or convert it"),
        ),
        None => (
            format!("`{path}` has no {named} signature"),
            String::from("check that the file is complete and its extension is correct"),
        ),
    };
    let diagnostic = Diagnostic::new(Rule::ASSET_MISMATCH, message).at(Location::file(path));
    Some(diagnostic.hint(hint))
}

fn type_of_name(ending: &str) -> Option<&'static str> {
    Some(match ending.to_ascii_lowercase().as_str() {
        "png" => "PNG",
        "jpg" | "jpeg" => "JPEG",
        "gif" => "GIF",
        "webp" => "WebP",
        "wav" => "WAV",
        "ogg" => "OGG",
        "mp3" => "MP3",
        "mp4" | "m4a" | "mov" => "MP4 or QuickTime",
        "webm" => "WebM",
        "flac" => "FLAC",
        "pdf" => "PDF",
        _ => return None,
    })
}

/// The signatures of the specification's table, with its omissions added.
fn type_of_bytes(head: &[u8]) -> Option<&'static str> {
    Some(match head {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => "PNG",
        [0xff, 0xd8, 0xff, ..] => "JPEG",
        [b'G', b'I', b'F', b'8', ..] => "GIF",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "WebP",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "WAV",
        [b'O', b'g', b'g', b'S', ..] => "OGG",
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => "MP4 or QuickTime",
        [0x1a, 0x45, 0xdf, 0xa3, ..] => "WebM",
        [b'f', b'L', b'a', b'C', ..] => "FLAC",
        [b'%', b'P', b'D', b'F', ..] => "PDF",
        [b'I', b'D', b'3', ..] => "MP3",
        [0xff, second, ..] if second & 0xe0 == 0xe0 => "MP3",
        _ => return None,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Image,
    Audio,
    Video,
    Document,
}

fn kind(path: &str) -> Option<Kind> {
    let ending = path.rsplit('.').next()?.to_ascii_lowercase();
    Some(match ending.as_str() {
        "png" | "jpg" | "jpeg" | "webp" | "gif" => Kind::Image,
        "mp3" | "wav" | "ogg" | "flac" | "m4a" => Kind::Audio,
        "mp4" | "webm" | "mov" => Kind::Video,
        "pdf" => Kind::Document,
        _ => return None,
    })
}

/// `{"type": "file", "path": "assets/x.png"}` anywhere in a test's input.
pub(super) fn media_files(reading: &LoadContext<'_>, file: &str, input: &Value, found: &mut Vec<Diagnostic>) {
    visit_media_files(reading, file, input, "", found);
}

fn visit_media_files(
    reading: &LoadContext<'_>,
    file: &str,
    value: &Value,
    pointer: &str,
    found: &mut Vec<Diagnostic>,
) {
    match value {
        Value::Object(map) => {
            if map.get("type").and_then(Value::as_str) == Some("file")
                && let Some(path) = map.get("path").and_then(Value::as_str)
            {
                let place = || reading.in_json(file, &join(pointer, "path"), EntryPart::Value);
                match file_map::normalise(path) {
                    None => {
                        let message = format!("`{path}` points outside the module's folder");
                        let diagnostic = Diagnostic::new(Rule::PATH_ESCAPES, message).at(place());
                        found.push(diagnostic.hint("store test media under assets/"));
                    }
                    Some(path) if !reading.files.contains(&path) => {
                        let message = format!("`{path}` does not exist");
                        let diagnostic = Diagnostic::new(Rule::ASSET_MISSING, message).at(place());
                        found.push(diagnostic.hint("media paths are relative to the module's folder"));
                    }
                    Some(_) => {}
                }
            }
            for (key, value) in map {
                visit_media_files(reading, file, value, &join(pointer, key), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                visit_media_files(reading, file, value, &join(pointer, &index.to_string()), found);
            }
        }
        _ => {}
    }
}

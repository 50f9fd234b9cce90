//! Assets: what tests refer to is there, and nothing is larger than its kind may be.

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Location, Rule};
use crate::document::{Part, join};
use crate::files;
use crate::load::Reading;

const MIB: f64 = 1024.0 * 1024.0;

pub(super) fn check(reading: &mut Reading<'_>) {
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
            // Sizes of files are far below what a double holds exactly.
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
    reading.report.extend(found);
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
pub(super) fn media_files(reading: &Reading<'_>, file: &str, input: &Value, found: &mut Vec<Diagnostic>) {
    look(reading, file, input, "", found);
}

fn look(reading: &Reading<'_>, file: &str, value: &Value, pointer: &str, found: &mut Vec<Diagnostic>) {
    match value {
        Value::Object(map) => {
            if map.get("type").and_then(Value::as_str) == Some("file")
                && let Some(path) = map.get("path").and_then(Value::as_str)
            {
                let place = || reading.in_json(file, &join(pointer, "path"), Part::Value);
                match files::normalise(path) {
                    None => {
                        let message = format!("`{path}` leads out of the module's folder");
                        let diagnostic = Diagnostic::new(Rule::PATH_ESCAPES, message).at(place());
                        found.push(diagnostic.hint("media of tests lives under assets/"));
                    }
                    Some(path) if !reading.files.contains(&path) => {
                        let message = format!("`{path}` does not exist");
                        let diagnostic = Diagnostic::new(Rule::ASSET_MISSING, message).at(place());
                        found.push(diagnostic.hint("paths of media count from the module's folder"));
                    }
                    Some(_) => {}
                }
            }
            for (key, value) in map {
                look(reading, file, value, &join(pointer, key), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                look(reading, file, value, &join(pointer, &index.to_string()), found);
            }
        }
        _ => {}
    }
}

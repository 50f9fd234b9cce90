//! Byte, duration and format limits of a module's media.

use ::media::{Bounds, Format, Oversize};
use module::Module;
use module::manifest::{Modality, Tier};

use super::settings::MediaSettings;

const MIB: f64 = 1024.0 * 1024.0;

pub(super) fn bounds(module: &Module, settings: &MediaSettings) -> Bounds {
    let manifest = &module.manifest;
    let constraints = &manifest.modalities.constraints;
    let bytes = |mib: f64| {
        if mib.is_finite() && mib > 0.0 {
            (mib * MIB) as u64
        } else {
            0
        }
    };
    let usual = match manifest.tier {
        Tier::Exec => Oversize::Refuse,
        _ => Oversize::Downscale,
    };
    let oversize = settings.oversize.unwrap_or(usual);
    Bounds {
        formats: formats(module),
        image_bytes: bytes(constraints.max_image_size_mb),
        audio_bytes: bytes(constraints.max_audio_size_mb),
        video_bytes: bytes(constraints.max_video_size_mb),
        document_bytes: bytes(constraints.max_document_size_mb),
        audio_ms: constraints.max_audio_duration_seconds.saturating_mul(1_000),
        video_ms: constraints.max_video_duration_seconds.saturating_mul(1_000),
        oversize,
        // Media of an exec module is not converted unless the operator configures it.
        normalise: settings.normalise && oversize == Oversize::Downscale,
        ..Bounds::default()
    }
}

/// The formats that a module lists and that can be inspected; all others are refused.
fn formats(module: &Module) -> Vec<Format> {
    let modalities = &module.manifest.modalities;
    let constraints = &modalities.constraints;
    let mut formats = Vec::new();
    for modality in &modalities.input {
        let listed = match modality {
            Modality::Text => continue,
            Modality::Image => &constraints.allowed_image_types,
            Modality::Audio => &constraints.allowed_audio_types,
            Modality::Video => &constraints.allowed_video_types,
            Modality::Document => {
                formats.push(Format::Pdf);
                continue;
            }
        };
        for mime in listed {
            match mime.strip_suffix("/*") {
                Some(family) => {
                    let inside = |format: &Format| format.mime().split('/').next() == Some(family);
                    formats.extend(Format::ALL.into_iter().filter(inside));
                }
                None => formats.extend(Format::from_mime(mime)),
            }
        }
    }
    formats
}

//! Supported formats, and detection from the first bytes. Formats that are only detected are named in error
//! messages.

use ir::media::MediaKind;

/// A supported format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    Jpeg,
    Png,
    WebP,
    Gif,
    Mpeg,
    Wav,
    Ogg,
    AudioWebm,
    AudioMp4,
    Mp4,
    QuickTime,
    Webm,
    Pdf,
}

impl Format {
    pub const ALL: [Self; 13] = [
        Self::Jpeg,
        Self::Png,
        Self::WebP,
        Self::Gif,
        Self::Mpeg,
        Self::Wav,
        Self::Ogg,
        Self::AudioWebm,
        Self::AudioMp4,
        Self::Mp4,
        Self::QuickTime,
        Self::Webm,
        Self::Pdf,
    ];

    pub const fn mime(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::WebP => "image/webp",
            Self::Gif => "image/gif",
            Self::Mpeg => "audio/mpeg",
            Self::Wav => "audio/wav",
            Self::Ogg => "audio/ogg",
            Self::AudioWebm => "audio/webm",
            Self::AudioMp4 => "audio/mp4",
            Self::Mp4 => "video/mp4",
            Self::QuickTime => "video/quicktime",
            Self::Webm => "video/webm",
            Self::Pdf => "application/pdf",
        }
    }

    pub const fn kind(self) -> MediaKind {
        match self {
            Self::Jpeg | Self::Png | Self::WebP | Self::Gif => MediaKind::Image,
            Self::Mpeg | Self::Wav | Self::Ogg | Self::AudioWebm | Self::AudioMp4 => MediaKind::Audio,
            Self::Mp4 | Self::QuickTime | Self::Webm => MediaKind::Video,
            Self::Pdf => MediaKind::Document,
        }
    }

    /// The format of a declared type. Parameters are ignored; legacy names are accepted.
    pub fn from_mime(mime: &str) -> Option<Self> {
        let plain = mime.split(';').next().unwrap_or_default();
        let plain = plain.trim().to_ascii_lowercase();
        let name = match plain.as_str() {
            "image/jpg" | "image/pjpeg" => "image/jpeg",
            "audio/mp3" | "audio/x-mp3" | "audio/x-mpeg" => "audio/mpeg",
            "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "audio/wav",
            "application/ogg" => "audio/ogg",
            "audio/m4a" | "audio/x-m4a" => "audio/mp4",
            "application/x-pdf" => "application/pdf",
            other => other,
        };
        Self::ALL.into_iter().find(|format| format.mime() == name)
    }

    /// Formats with the same signature that are distinguished only by their content.
    pub(crate) const fn family(self) -> Family {
        match self {
            Self::Mp4 | Self::AudioMp4 | Self::QuickTime => Family::Boxes,
            Self::Webm | Self::AudioWebm => Family::Elements,
            other => Family::Alone(other),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Boxes,
    Elements,
    Alone(Format),
}

/// The format family detected from the first bytes.
pub(crate) fn family_of(head: &[u8]) -> Option<Family> {
    match detect(head)? {
        "video/mp4" | "video/quicktime" | "audio/mp4" => Some(Family::Boxes),
        "video/webm" => Some(Family::Elements),
        mime => Format::from_mime(mime).map(Family::Alone),
    }
}

/// The type detected from the first bytes, including unsupported formats.
pub fn detect(head: &[u8]) -> Option<&'static str> {
    let at = |offset: usize, magic: &[u8]| head.get(offset..).is_some_and(|tail| tail.starts_with(magic));
    if at(4, b"ftyp") {
        return Some(brand(head));
    }
    let known: &[(&[u8], &'static str)] = &[
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"OggS", "audio/ogg"),
        (b"fLaC", "audio/flac"),
        (b"ID3", "audio/mpeg"),
        (b"%PDF-", "application/pdf"),
        (b"\x1a\x45\xdf\xa3", "video/webm"),
        (b"II*\0", "image/tiff"),
        (b"MM\0*", "image/tiff"),
        (b"BM", "image/bmp"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
        (b"<svg", "image/svg+xml"),
        (b"<!DOCTYPE html", "text/html"),
        (b"<html", "text/html"),
        (b"MZ", "application/x-msdownload"),
        (b"\x7fELF", "application/x-elf"),
    ];
    if let Some((_, mime)) = known.iter().find(|(magic, _)| at(0, magic)) {
        return Some(mime);
    }
    if at(0, b"RIFF") {
        return match head.get(8..12) {
            Some(b"WEBP") => Some("image/webp"),
            Some(b"WAVE") => Some("audio/wav"),
            _ => None,
        };
    }
    if at(0, b"<?xml") && head.windows(4).any(|window| window == b"<svg") {
        return Some("image/svg+xml");
    }
    match head {
        // The 11 sync bits of a frame header, a valid layer, a valid bit rate.
        [0xff, second, third, ..]
            if second & 0xe0 == 0xe0 && second & 0x06 != 0 && second & 0x18 != 0x08 && third >> 4 != 0xf =>
        {
            Some("audio/mpeg")
        }
        _ => None,
    }
}

fn brand(head: &[u8]) -> &'static str {
    match head.get(8..12).unwrap_or_default() {
        b"qt  " => "video/quicktime",
        b"M4A " | b"M4B " => "audio/mp4",
        b"heic" | b"heix" | b"mif1" | b"msf1" | b"hevc" => "image/heic",
        b"avif" | b"avis" => "image/avif",
        _ => "video/mp4",
    }
}

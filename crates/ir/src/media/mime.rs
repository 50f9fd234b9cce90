//! Media types as far as the IR needs them: detection from the first bytes, and the short names of audio
//! formats in dialects. Full validation of media belongs to the crate `media`.

/// The type detected from the first bytes.
pub fn sniff(head: &[u8]) -> Option<&'static str> {
    let at = |offset: usize, magic: &[u8]| head.get(offset..).is_some_and(|tail| tail.starts_with(magic));
    if at(0, b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if at(0, b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if at(0, b"GIF87a") || at(0, b"GIF89a") {
        Some("image/gif")
    } else if at(0, b"RIFF") && at(8, b"WEBP") {
        Some("image/webp")
    } else if at(0, b"RIFF") && at(8, b"WAVE") {
        Some("audio/wav")
    } else if at(0, b"ID3") || at(0, b"\xff\xfb") || at(0, b"\xff\xf3") {
        Some("audio/mpeg")
    } else if at(0, b"OggS") {
        Some("audio/ogg")
    } else if at(0, b"fLaC") {
        Some("audio/flac")
    } else if at(0, b"%PDF-") {
        Some("application/pdf")
    } else if at(4, b"ftyp") {
        Some("video/mp4")
    } else if at(0, b"\x1a\x45\xdf\xa3") {
        Some("video/webm")
    } else {
        None
    }
}

/// `wav` to `audio/wav` and so on. The type of raw samples includes their rate.
pub fn mime_of_audio_format(format: &str, sample_rate_hz: Option<u64>) -> Option<String> {
    let mime = match format {
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        "ogg" => "audio/ogg",
        "webm" => "audio/webm",
        "flac" => "audio/flac",
        "aac" => "audio/aac",
        "opus" => "audio/opus",
        "m4a" => "audio/mp4",
        "pcm16" => {
            let rate = sample_rate_hz.unwrap_or(24_000);
            return Some(format!("audio/L16;rate={rate};channels=1"));
        }
        _ => return None,
    };
    Some(String::from(mime))
}

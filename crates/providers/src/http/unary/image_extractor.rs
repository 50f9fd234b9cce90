//! Extracts large images from a JSON response while it arrives: their bytes go to the spill store, and the
//! remaining text is parsed without them. Afterwards each image replaces its placeholder.

use std::io::{self, Write};

use ir::envelope::ImageResponse;
use ir::{Error, MediaSource, Phase};
use serde_json::Value;
use spill::{RunSpill, SpillStore, SpillWriter, random_secret};
use wire::base64_extractor::{Base64Extractor, BytesSink, ExtractError};

use crate::limits::{ANSWER_BYTES_MAX, EXTRACT_CHARS_MIN, LIFT_CHARS_MAX};

/// The field with the bytes of an image.
const KEY: &str = "b64_json";

#[derive(Debug)]
pub(super) struct ImageExtractor {
    extractor: Base64Extractor,
    kept: SpillSink,
}

/// The response without its large images, and the images.
#[derive(Debug)]
pub(super) struct ExtractedImages {
    pub(super) text: Vec<u8>,
    /// The images by their placeholders.
    pictures: Vec<(String, MediaSource)>,
}

#[derive(Debug)]
struct SpillSink {
    run: RunSpill,
    open: Option<SpillWriter>,
    done: Vec<MediaSource>,
}

impl ImageExtractor {
    pub(super) fn new(store: &SpillStore) -> Result<Self, Error> {
        let secret = random_secret(Phase::MidStream)?;
        let chars = store.threshold().div_ceil(3).saturating_mul(4);
        let chars_max = usize::try_from(chars).unwrap_or(usize::MAX);
        let chars_max = chars_max.clamp(EXTRACT_CHARS_MIN, LIFT_CHARS_MAX);
        Ok(Self {
            extractor: Base64Extractor::new(KEY, chars_max, secret),
            kept: SpillSink {
                run: store.run_spill(),
                open: None,
                done: Vec::new(),
            },
        })
    }

    pub(super) fn finish(self) -> io::Result<ExtractedImages> {
        let extracted = self.extractor.finish().map_err(broken)?;
        Ok(ExtractedImages {
            text: extracted.text,
            pictures: extracted.placeholders.into_iter().zip(self.kept.done).collect(),
        })
    }
}

impl Write for ImageExtractor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.extractor.push(bytes, &mut self.kept).map_err(broken)?;
        if self.extractor.text_bytes() > ANSWER_BYTES_MAX {
            let message = format!("it is larger than {ANSWER_BYTES_MAX} bytes without its images");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BytesSink for SpillSink {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        let open = self.open.get_or_insert_with(|| self.run.writer());
        open.write_all(bytes)
    }

    fn close(&mut self) -> io::Result<()> {
        if let Some(open) = self.open.take() {
            self.done.push(open.finish()?);
        }
        Ok(())
    }
}

fn broken(error: ExtractError) -> io::Error {
    match error {
        ExtractError::Sink(error) => error,
        ExtractError::NotBase64 | ExtractError::Truncated => {
            io::Error::new(io::ErrorKind::InvalidData, error)
        }
    }
}

impl ExtractedImages {
    /// Replaces the placeholders in the response by the images.
    pub(super) fn place(&self, response: &mut ImageResponse) -> Result<(), Error> {
        let mut placed = 0;
        for media in &mut response.images {
            if let MediaSource::Inline(text) = &media.source
                && let Some(source) = self.image_for(text.as_str())
            {
                media.source = source.clone();
                placed += 1;
            }
        }
        if placed < self.pictures.len() {
            let message = "the answer has images in unexpected fields";
            return Err(Error::invalid_response(Phase::MidStream, message));
        }
        Ok(())
    }

    /// Replaces placeholders in the raw response by the checksums of the images; returns whether there were any.
    pub(super) fn name(&self, raw: &mut Value) -> bool {
        match raw {
            Value::String(text) => match self.image_for(text) {
                Some(MediaSource::Handle(media)) => {
                    *text = format!("sha256:{}", media.checksum().value);
                    true
                }
                Some(MediaSource::Inline(data)) => {
                    *text = String::from(data.as_str());
                    false
                }
                _ => false,
            },
            Value::Array(list) => list.iter_mut().fold(false, |any, one| self.name(one) | any),
            Value::Object(map) => map.values_mut().fold(false, |any, one| self.name(one) | any),
            _ => false,
        }
    }

    fn image_for(&self, text: &str) -> Option<&MediaSource> {
        let found = self.pictures.iter().find(|(placeholder, _)| placeholder == text);
        found.map(|(_, source)| source)
    }
}

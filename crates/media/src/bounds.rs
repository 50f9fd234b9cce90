//! Accepted formats, sizes and durations. The defaults are those of the module language.

use ir::media::MediaKind;

use crate::error::{Error, Limit};
use crate::facts::Facts;
use crate::format::Format;
use crate::limits;

/// Handling of an image that is wider or higher than allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oversize {
    #[default]
    Refuse,
    Downscale,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Accepted output formats.
    pub formats: Vec<Format>,
    pub image_bytes: u64,
    pub audio_bytes: u64,
    pub video_bytes: u64,
    pub document_bytes: u64,
    pub audio_ms: u64,
    pub video_ms: u64,
    pub pages: u64,
    /// Bounds for the sides of an image.
    pub side_max: u64,
    pub side_min: u64,
    pub pixels_max: u64,
    /// For videos, in either orientation.
    pub video_sides: (u64, u64),
    pub oversize: Oversize,
    /// Whether an image of a format that is not accepted is converted to an accepted one.
    pub normalise: bool,
}

const MIB: u64 = 1024 * 1024;

impl Default for Bounds {
    fn default() -> Self {
        Self {
            formats: Format::ALL.to_vec(),
            image_bytes: 20 * MIB,
            audio_bytes: 25 * MIB,
            video_bytes: 100 * MIB,
            document_bytes: 50 * MIB,
            audio_ms: 600_000,
            video_ms: 300_000,
            pages: 500,
            side_max: 8_192,
            side_min: 10,
            pixels_max: 67_108_864,
            video_sides: (3_840, 2_160),
            oversize: Oversize::Refuse,
            normalise: false,
        }
    }
}

impl Bounds {
    /// Maximum size for this kind; for unknown media, the maximum of all kinds.
    pub fn bytes(&self, kind: Option<MediaKind>) -> u64 {
        match kind {
            Some(MediaKind::Image) => self.image_bytes.min(limits::IMAGE_BYTES_MAX),
            Some(MediaKind::Audio) => self.audio_bytes,
            Some(MediaKind::Video) => self.video_bytes,
            Some(MediaKind::Document) => self.document_bytes.min(limits::DOCUMENT_BYTES_MAX),
            Some(MediaKind::Other) | None => self
                .image_bytes
                .max(self.audio_bytes)
                .max(self.video_bytes)
                .max(self.document_bytes),
        }
    }

    pub(crate) fn unsupported(&self, media_type: Option<&str>) -> Error {
        Error::Unsupported {
            media_type: media_type.map(String::from),
            allowed: self
                .formats
                .iter()
                .map(|format| String::from(format.mime()))
                .collect(),
        }
    }

    /// Whether the format is accepted, as it is or after conversion.
    pub(crate) fn admits(&self, format: Format) -> bool {
        self.formats.contains(&format) || self.substitute(format).is_some()
    }

    /// The format to which an image of a format that is not accepted is converted.
    pub(crate) fn substitute(&self, format: Format) -> Option<Format> {
        if !self.normalise || format.kind() != MediaKind::Image || self.formats.contains(&format) {
            return None;
        }
        let lossless = [Format::Png, Format::WebP, Format::Jpeg];
        let photo = [Format::Jpeg, Format::Png, Format::WebP];
        let order = if format == Format::Jpeg { photo } else { lossless };
        order.into_iter().find(|format| self.formats.contains(format))
    }

    pub(crate) fn size(&self, kind: MediaKind, actual: u64) -> Result<(), Error> {
        within(Limit::Size, self.bytes(Some(kind)), actual)
    }

    /// Checks the bounds on decoded properties. An image that will be downscaled may exceed them.
    pub(crate) fn content(&self, facts: &Facts) -> Result<(), Error> {
        match facts.format.kind() {
            MediaKind::Image => self.picture(facts)?,
            MediaKind::Audio => duration(self.audio_ms, facts)?,
            MediaKind::Video => {
                self.screen(facts)?;
                duration(self.video_ms, facts)?;
            }
            MediaKind::Document | MediaKind::Other => {
                let pages = facts.pages.ok_or_else(|| Error::undecodable("it has no pages"))?;
                within(Limit::Pages, self.pages, pages)?;
            }
        }
        Ok(())
    }

    fn picture(&self, facts: &Facts) -> Result<(), Error> {
        let (Some(width), Some(height)) = (facts.width, facts.height) else {
            return Err(Error::undecodable("it has no width and height"));
        };
        let pixels = width.saturating_mul(height);
        let scales = self.oversize == Oversize::Downscale && pixels <= limits::SCALE_PIXELS_MAX;
        if (width > self.side_max || height > self.side_max) && !scales {
            return Err(Error::TooWide {
                width,
                height,
                allowed: (self.side_max, self.side_max),
            });
        }
        if width < self.side_min || height < self.side_min {
            return Err(Error::TooSmall {
                width,
                height,
                allowed: self.side_min,
            });
        }
        if pixels > self.pixels_max && !scales {
            return Err(Error::TooManyPixels {
                pixels,
                allowed: self.pixels_max,
            });
        }
        Ok(())
    }

    fn screen(&self, facts: &Facts) -> Result<(), Error> {
        let (Some(width), Some(height)) = (facts.width, facts.height) else {
            return Err(Error::undecodable("it has no video track"));
        };
        let (long, short) = self.video_sides;
        if width.max(height) > long || width.min(height) > short {
            return Err(Error::TooWide {
                width,
                height,
                allowed: self.video_sides,
            });
        }
        Ok(())
    }

    /// The size to which an image is downscaled; `None` if it is within bounds.
    pub(crate) fn scaled(&self, width: u64, height: u64) -> Option<(u32, u32)> {
        let side = self.side_max as f64 / width.max(height) as f64;
        let area = (self.pixels_max as f64 / (width.saturating_mul(height)) as f64).sqrt();
        let factor = side.min(area);
        if self.oversize == Oversize::Refuse || factor >= 1.0 {
            return None;
        }
        let to = |length: u64| ((length as f64 * factor).floor() as u32).max(1);
        Some((to(width), to(height)))
    }
}

/// An unknown duration is an error.
fn duration(allowed: u64, facts: &Facts) -> Result<(), Error> {
    let actual = facts
        .duration_ms
        .ok_or_else(|| Error::undecodable("its duration cannot be determined"))?;
    within(Limit::Duration, allowed, actual)
}

fn within(limit: Limit, allowed: u64, actual: u64) -> Result<(), Error> {
    if actual > allowed {
        return Err(Error::TooLarge {
            limit,
            allowed,
            actual,
        });
    }
    Ok(())
}

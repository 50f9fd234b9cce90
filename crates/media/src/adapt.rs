//! Pictures made to fit: scaled down, turned into another format, or the first one of an animation.
//! Every change makes new media, and is said.

use std::io::Cursor;

use ::image::DynamicImage;
use ::image::codecs::jpeg::JpegEncoder;
use ::image::imageops::FilterType;

use crate::facts::Facts;
use crate::error::Error;
use crate::format::Format;
use crate::image::{codec, decode};
use crate::orientation::Orientation;

/// What was done to a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    FirstFrame,
    Downscaled,
    Converted,
}

/// A change, with the size and the format before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adaptation {
    pub action: Action,
    pub from: String,
    pub to: String,
}

impl Action {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FirstFrame => "first_frame",
            Self::Downscaled => "downscaled",
            Self::Converted => "converted",
        }
    }
}

const JPEG_QUALITY: u8 = 90;

/// What is to become of a picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdaptTarget {
    pub(crate) format: Format,
    pub(crate) size: Option<(u32, u32)>,
    pub(crate) orientation: Option<Orientation>,
}

/// Decodes, turns upright, scales and encodes anew. `facts` become those of the result.
pub(crate) fn redraw(bytes: &[u8], facts: &mut Facts, wish: AdaptTarget) -> Result<Vec<u8>, Error> {
    let mut picture = decode(facts.format, bytes)?;
    if let Some((width, height)) = wish.size {
        // Scaling before turning touches fewer pixels; the size is that of the upright picture.
        let turns = wish.orientation.is_some_and(Orientation::turns);
        let (width, height) = if turns { (height, width) } else { (width, height) };
        picture = picture.resize_exact(width, height, FilterType::Triangle);
    }
    if let Some(orientation) = wish.orientation {
        orientation.apply(&mut picture);
    }
    let bytes = encode(&picture, wish.format)?;
    facts.format = wish.format;
    facts.width = Some(u64::from(picture.width()));
    facts.height = Some(u64::from(picture.height()));
    facts.frames = Some(1);
    Ok(bytes)
}

fn encode(picture: &DynamicImage, format: Format) -> Result<Vec<u8>, Error> {
    let mut out = Cursor::new(Vec::new());
    let written = match format {
        Format::Jpeg => picture
            .to_rgb8()
            .write_with_encoder(JpegEncoder::new_with_quality(&mut out, JPEG_QUALITY)),
        Format::WebP => DynamicImage::from(picture.to_rgba8()).write_to(&mut out, codec(format)?),
        _ => picture.write_to(&mut out, codec(format)?),
    };
    written.map_err(|error| Error::undecodable(error.to_string()))?;
    Ok(out.into_inner())
}

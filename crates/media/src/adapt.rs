//! Adapts images to the bounds: downscaling, conversion, or reduction of an animation to its first frame.
//! Every change is recorded as an [`Adaptation`].

use std::io::Cursor;

use ::image::DynamicImage;
use ::image::codecs::jpeg::JpegEncoder;
use ::image::imageops::FilterType;

use crate::error::Error;
use crate::facts::Facts;
use crate::format::Format;
use crate::image::{codec, decode};
use crate::orientation::Orientation;

/// A change of an image.
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

/// The target of a change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdaptTarget {
    pub(crate) format: Format,
    pub(crate) size: Option<(u32, u32)>,
    pub(crate) orientation: Option<Orientation>,
}

/// Decodes, applies the orientation, scales and encodes again. `facts` are updated to those of the result.
pub(crate) fn redraw(bytes: &[u8], facts: &mut Facts, target: AdaptTarget) -> Result<Vec<u8>, Error> {
    let mut picture = decode(facts.format, bytes)?;
    if let Some((width, height)) = target.size {
        // Scaling before rotating touches fewer pixels; the size is that of the upright image.
        let turns = target.orientation.is_some_and(Orientation::turns);
        let (width, height) = if turns { (height, width) } else { (width, height) };
        picture = picture.resize_exact(width, height, FilterType::Triangle);
    }
    if let Some(orientation) = target.orientation {
        orientation.apply(&mut picture);
    }
    let bytes = encode(&picture, target.format)?;
    facts.format = target.format;
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

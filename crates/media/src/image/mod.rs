//! Images: the container is scanned, parts needed for display are retained, and the image is decoded once
//! to validate it. Each format's file lists what is retained; everything else is removed.

mod gif;
mod jpeg;
mod png;
mod trailer;
mod webp;

use std::io::Cursor;

use ::image::{DynamicImage, ImageError, ImageFormat, ImageReader, Limits};

use crate::error::Error;
use crate::facts::Facts;
use crate::format::Format;
use crate::limits;
use crate::orientation::Orientation;
use crate::range_writer::SegmentList;
use crate::source::be_u32;

/// The result of scanning an image container.
#[derive(Debug, Default)]
pub(crate) struct ContainerScan {
    pub(crate) pieces: SegmentList,
    /// The first frame of an animation, if it can be extracted without decoding.
    pub(crate) first: Option<SegmentList>,
    pub(crate) frames: u64,
    pub(crate) orientation: Option<Orientation>,
    /// Names of the removed metadata.
    pub(crate) removed: Vec<&'static str>,
    /// End of the image; bytes after it are a trailer.
    pub(crate) end: u64,
}

impl ContainerScan {
    pub(crate) fn remove(&mut self, what: &'static str) {
        if !self.removed.contains(&what) {
            self.removed.push(what);
        }
    }
}

pub(crate) fn walk(format: Format, bytes: &[u8]) -> Result<ContainerScan, Error> {
    let mut walk = match format {
        Format::Jpeg => jpeg::walk(bytes),
        Format::Png => png::walk(bytes),
        Format::Gif => gif::walk(bytes),
        Format::WebP => webp::walk(bytes),
        _ => return Err(Error::undecodable("it is not an image")),
    }?;
    trailer::check(bytes, &mut walk)?;
    Ok(walk)
}

/// Fills in the facts of the header, with the orientation applied.
pub(crate) fn measure(bytes: &[u8], walk: &ContainerScan, facts: &mut Facts) -> Result<(), Error> {
    let (width, height) = sides(facts.format, bytes)?;
    let turns = walk.orientation.is_some_and(Orientation::turns);
    let (width, height) = if turns { (height, width) } else { (width, height) };
    facts.width = Some(u64::from(width));
    facts.height = Some(u64::from(height));
    facts.frames = Some(walk.frames);
    Ok(())
}

/// Width and height from the header.
fn sides(format: Format, bytes: &[u8]) -> Result<(u32, u32), Error> {
    if format == Format::Png {
        // The library checks its memory limit before it returns the dimensions; an oversized image must be
        // refused for its dimensions.
        let at = |place| be_u32(bytes, place).ok_or_else(Error::truncated);
        return Ok((at(16)?, at(20)?));
    }
    reader(format, bytes)?
        .into_dimensions()
        .map_err(|error| undecodable(&error))
}

/// Decodes the image to validate it, unless it exceeds the pixel limit for that.
pub(crate) fn validate(bytes: &[u8], facts: &Facts) -> Result<(), Error> {
    let pixels = facts.width.unwrap_or(0).saturating_mul(facts.height.unwrap_or(0));
    if pixels <= limits::DECODE_PIXELS_MAX {
        decode(facts.format, bytes)?;
    }
    Ok(())
}

/// The first frame, without applying the orientation.
pub(crate) fn decode(format: Format, bytes: &[u8]) -> Result<DynamicImage, Error> {
    reader(format, bytes)?
        .decode()
        .map_err(|error| undecodable(&error))
}

fn reader(format: Format, bytes: &[u8]) -> Result<ImageReader<Cursor<&[u8]>>, Error> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), codec(format)?);
    let mut bounds = Limits::default();
    bounds.max_alloc = Some(limits::DECODE_ALLOC_MAX);
    reader.limits(bounds);
    Ok(reader)
}

pub(crate) fn codec(format: Format) -> Result<ImageFormat, Error> {
    Ok(match format {
        Format::Jpeg => ImageFormat::Jpeg,
        Format::Png => ImageFormat::Png,
        Format::Gif => ImageFormat::Gif,
        Format::WebP => ImageFormat::WebP,
        _ => return Err(Error::undecodable("it is not an image")),
    })
}

fn undecodable(error: &ImageError) -> Error {
    Error::undecodable(error.to_string())
}

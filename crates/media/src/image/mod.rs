//! Pictures: their structure is walked, what is needed to show them is kept, and they are decoded once to
//! see whether they can be. Each format says in its file what is kept; everything else goes.

mod gif;
mod jpeg;
mod png;
mod trailer;
mod webp;

use std::io::Cursor;

use ::image::{DynamicImage, ImageError, ImageFormat, ImageReader, Limits};

use crate::facts::Facts;
use crate::error::Error;
use crate::format::Format;
use crate::limits;
use crate::orientation::Orientation;
use crate::range_writer::SegmentList;
use crate::source::be_u32;

/// What a walk through a picture found.
#[derive(Debug, Default)]
pub(crate) struct ContainerScan {
    pub(crate) pieces: SegmentList,
    /// The first picture of an animation, where it can be cut out without decoding.
    pub(crate) first: Option<SegmentList>,
    pub(crate) frames: u64,
    pub(crate) orientation: Option<Orientation>,
    /// What was left out, in words.
    pub(crate) removed: Vec<&'static str>,
    /// Where the picture ends; whatever is behind it belongs to something else.
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
        _ => return Err(Error::undecodable("it is no picture")),
    }?;
    trailer::check(bytes, &mut walk)?;
    Ok(walk)
}

/// Fills in what the header says, as it is meant to be seen.
pub(crate) fn measure(bytes: &[u8], walk: &ContainerScan, facts: &mut Facts) -> Result<(), Error> {
    let (width, height) = sides(facts.format, bytes)?;
    let turns = walk.orientation.is_some_and(Orientation::turns);
    let (width, height) = if turns { (height, width) } else { (width, height) };
    facts.width = Some(u64::from(width));
    facts.height = Some(u64::from(height));
    facts.frames = Some(walk.frames);
    Ok(())
}

/// Width and height as the header has them.
fn sides(format: Format, bytes: &[u8]) -> Result<(u32, u32), Error> {
    if format == Format::Png {
        // The library checks its memory before it tells; an absurd size is to be refused as what it is.
        let at = |place| be_u32(bytes, place).ok_or_else(Error::truncated);
        return Ok((at(16)?, at(20)?));
    }
    reader(format, bytes)?
        .into_dimensions()
        .map_err(|error| undecodable(&error))
}

/// Decodes to see whether it can be, unless the picture is so large that this would cost too much.
pub(crate) fn validate(bytes: &[u8], facts: &Facts) -> Result<(), Error> {
    let pixels = facts.width.unwrap_or(0).saturating_mul(facts.height.unwrap_or(0));
    if pixels <= limits::DECODE_PIXELS_MAX {
        decode(facts.format, bytes)?;
    }
    Ok(())
}

/// The first picture, not yet turned.
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
        _ => return Err(Error::undecodable("it is no picture")),
    })
}

fn undecodable(error: &ImageError) -> Error {
    Error::undecodable(error.to_string())
}

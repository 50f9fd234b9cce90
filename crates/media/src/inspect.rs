//! Complete inspection of media, cheapest checks first: accepted type, size, checksum, declared against
//! detected type, completeness, and bounds of the content.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ir::media::MediaKind;

use crate::bounds::Bounds;
use crate::checksum::{Declared, verify};
use crate::error::Error;
use crate::facts::Facts;
use crate::format::{Family, Format, detect, family_of};
use crate::image::{self, ContainerScan};
use crate::orientation::Orientation;
use crate::range_writer::SegmentList;
use crate::source::{Source, head, length, whole};
use crate::{audio, document, limits, video};

/// Media that passed all checks, and how it is written without metadata.
#[derive(Debug)]
pub struct Inspected {
    pub facts: Facts,
    /// Names of the metadata that is left out when it is written.
    pub removed: Vec<&'static str>,
    pub(crate) pieces: SegmentList,
    pub(crate) first: Option<SegmentList>,
    pub(crate) orientation: Option<Orientation>,
}

/// Inspects all bytes. A panic of a library on hostile bytes is reported as corrupt media.
pub fn inspect(source: &mut dyn Source, declared: &Declared, bounds: &Bounds) -> Result<Inspected, Error> {
    let result = catch_unwind(AssertUnwindSafe(|| inspect_source(source, declared, bounds)));
    result.unwrap_or_else(|_| Err(Error::undecodable("the decoder failed unexpectedly")))
}

fn inspect_source(source: &mut dyn Source, declared: &Declared, bounds: &Bounds) -> Result<Inspected, Error> {
    let claimed = declared
        .mime
        .as_deref()
        .map(|mime| format_of(mime, bounds))
        .transpose()?;
    let size = length(source)?;
    if let Some(format) = claimed {
        bounds.size(format.kind(), size)?;
    }
    let (size_bytes, sha256) = verify(source, declared.checksum.as_ref())?;
    let head = head(source)?;
    let family = family_of(&head);
    if let Some(claimed) = claimed.filter(|claimed| family != Some(claimed.family())) {
        return Err(mismatch(claimed, detect(&head), &head));
    }
    let family = family.ok_or_else(|| bounds.unsupported(detect(&head)))?;
    // The content shows which format of the family it is; until then the family's largest bound applies.
    let kind = match family {
        Family::Alone(format) => format_of(format.mime(), bounds)?.kind(),
        Family::Boxes | Family::Elements => MediaKind::Video,
    };
    bounds.size(kind, size_bytes)?;
    let mut found = match family {
        Family::Boxes => container(video::look_at_boxes(source)?),
        Family::Elements => container(video::look_at_elements(source)?),
        Family::Alone(format) => alone(source, format, bounds)?,
    };
    let format = found.facts.format;
    if let Some(claimed) = claimed.filter(|claimed| *claimed != format) {
        return Err(mismatch(claimed, Some(format.mime()), &head));
    }
    format_of(format.mime(), bounds)?;
    bounds.size(format.kind(), size_bytes)?;
    found.facts.size_bytes = size_bytes;
    found.facts.sha256 = sha256;
    bounds.content(&found.facts)?;
    if format.kind() == MediaKind::Image {
        let bytes = whole(source, limits::IMAGE_BYTES_MAX)?;
        image::validate(&bytes, &found.facts)?;
    }
    Ok(found)
}

fn format_of(mime: &str, bounds: &Bounds) -> Result<Format, Error> {
    Format::from_mime(mime)
        .filter(|format| bounds.admits(*format))
        .ok_or_else(|| bounds.unsupported(Some(mime)))
}

fn mismatch(claimed: Format, detected: Option<&str>, head: &[u8]) -> Error {
    Error::Mismatch {
        declared: String::from(claimed.mime()),
        detected: detected.map(String::from),
        magic_bytes: hex::encode(head.get(..head.len().min(8)).unwrap_or_default()),
    }
}

fn alone(source: &mut dyn Source, format: Format, bounds: &Bounds) -> Result<Inspected, Error> {
    let mut facts = Facts::new(format);
    Ok(match format.kind() {
        MediaKind::Image => {
            let bytes = whole(source, bounds.bytes(Some(MediaKind::Image)))?;
            let walk = image::walk(format, &bytes)?;
            image::measure(&bytes, &walk, &mut facts)?;
            picture(facts, walk)
        }
        MediaKind::Document => {
            let (pieces, removed) = document::scan(source, &mut facts)?;
            plain(facts, pieces, removed)
        }
        _ => {
            let kept = audio::scan(source, &mut facts)?;
            plain(facts, kept.pieces, kept.removed)
        }
    })
}

fn picture(facts: Facts, walk: ContainerScan) -> Inspected {
    Inspected {
        facts,
        removed: walk.removed,
        pieces: walk.pieces,
        first: walk.first,
        orientation: walk.orientation,
    }
}

fn container(found: video::ContainerFacts) -> Inspected {
    let mut facts = Facts::new(found.format);
    facts.width = found.width;
    facts.height = found.height;
    facts.duration_ms = found.duration_ms;
    facts.sample_rate_hz = found.sample_rate_hz;
    facts.channels = found.channels;
    plain(facts, found.pieces, found.removed)
}

fn plain(facts: Facts, pieces: SegmentList, removed: Vec<&'static str>) -> Inspected {
    Inspected {
        facts,
        removed,
        pieces,
        first: None,
        orientation: None,
    }
}

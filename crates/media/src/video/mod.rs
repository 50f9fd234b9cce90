//! Video, and audio in the same containers. The duration is computed from the samples, not taken from the
//! header; metadata is overwritten in place, so that offsets stay valid.

mod bmff;
mod boxes;
mod ebml;
mod webm;

pub(crate) use bmff::scan as look_at_boxes;
pub(crate) use webm::scan as look_at_elements;

use crate::format::Format;
use crate::range_writer::SegmentList;

/// The facts of a container.
#[derive(Debug)]
pub(crate) struct ContainerFacts {
    pub(crate) format: Format,
    pub(crate) width: Option<u64>,
    pub(crate) height: Option<u64>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) sample_rate_hz: Option<u64>,
    pub(crate) channels: Option<u64>,
    pub(crate) pieces: SegmentList,
    pub(crate) removed: Vec<&'static str>,
}

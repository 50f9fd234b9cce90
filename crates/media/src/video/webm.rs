//! WebM, with video or audio only. The duration is measured from the frames: live recordings have none in
//! the header, and one in the header may be wrong.

use std::io::{Read, Seek, SeekFrom};

use matroska_demuxer::{DemuxError, Frame, MatroskaFile, TrackType};

use super::{ContainerFacts, ebml};
use crate::error::Error;
use crate::format::Format;
use crate::limits;
use crate::source::{Source, length};

pub(crate) fn scan(source: &mut dyn Source) -> Result<ContainerFacts, Error> {
    let walk = ebml::walk(source)?;
    let total = length(source)?;
    source.rewind()?;
    let mut file = MatroskaFile::open(SourceAdapter(&mut *source)).map_err(|error| broken(&error))?;
    if file.ebml_header().doc_type() != "webm" {
        return Err(Error::undecodable("it is Matroska, not WebM"));
    }
    let scale = file.info().timestamp_scale().get();
    let stated = file
        .info()
        .duration()
        .filter(|length| length.is_finite())
        .unwrap_or(0.0);
    let of = |kind: TrackType| file.tracks().iter().find(move |track| track.track_type() == kind);
    let picture = of(TrackType::Video).and_then(|track| track.video());
    let sound = of(TrackType::Audio).and_then(|track| track.audio());
    let format = match (picture, sound) {
        (Some(_), _) => Format::Webm,
        (None, Some(_)) => Format::AudioWebm,
        (None, None) => return Err(Error::undecodable("it has neither a video nor an audio track")),
    };
    let mut found = ContainerFacts {
        format,
        width: picture.map(|video| video.pixel_width().get()),
        height: picture.map(|video| video.pixel_height().get()),
        duration_ms: None,
        sample_rate_hz: sound.map(|audio| audio.sampling_frequency() as u64),
        channels: sound.map(|audio| audio.channels().get()),
        pieces: walk.patches.apply(total),
        removed: walk.removed,
    };
    let last = last_frame(&mut file)?;
    let units = (last as f64).max(stated);
    // Timestamps are in units of `scale` nanoseconds.
    let ms = units * scale as f64 / 1_000_000.0;
    found.duration_ms = (last > 0 || stated > 0.0).then_some(ms.ceil() as u64);
    Ok(found)
}

/// Start of the last frame, or its end if its duration is known.
fn last_frame<R: Read + Seek>(film: &mut MatroskaFile<R>) -> Result<u64, Error> {
    let mut frame = Frame::default();
    let mut last = 0;
    for _ in 0..limits::PACKETS_MAX {
        match film.next_frame(&mut frame) {
            Ok(true) => last = last.max(frame.timestamp.saturating_add(frame.duration.unwrap_or(0))),
            Ok(false) => return Ok(last),
            Err(error) => return Err(broken(&error)),
        }
    }
    Err(Error::undecodable("it has too many frames"))
}

fn broken(error: &DemuxError) -> Error {
    Error::undecodable(error.to_string())
}

/// Adapts a borrowed source to the demuxer's traits.
struct SourceAdapter<'s>(&'s mut dyn Source);

impl Read for SourceAdapter<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Seek for SourceAdapter<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

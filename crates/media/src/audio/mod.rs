//! Audio: the duration is measured by counting packets, not read from the header; tags are removed without
//! changing samples. Demuxing is done by a library; which parts of a file are retained is decided here.

mod mpeg;
mod ogg;
mod wav;

use std::io::{Read, Seek, SeekFrom};

use symphonia_bundle_mp3::MpaReader;
use symphonia_core::codecs::CodecParameters;
use symphonia_core::formats::{FormatOptions, FormatReader};
use symphonia_core::io::{MediaSource, MediaSourceStream, MediaSourceStreamOptions};
use symphonia_format_ogg::OggReader;
use symphonia_format_riff::WavReader;

use crate::error::Error;
use crate::facts::Facts;
use crate::format::Format;
use crate::limits;
use crate::range_writer::SegmentList;
use crate::source::{Source, length};

/// The retained segments, and what was removed.
#[derive(Debug, Default)]
pub(crate) struct RetainedAudio {
    pub(crate) pieces: SegmentList,
    pub(crate) removed: Vec<&'static str>,
}

pub(crate) fn scan(source: &mut dyn Source, facts: &mut Facts) -> Result<RetainedAudio, Error> {
    let kept = match facts.format {
        Format::Mpeg => mpeg::walk(source),
        Format::Wav => wav::walk(source),
        Format::Ogg => ogg::walk(source),
        _ => return Err(Error::undecodable("it is not audio")),
    }?;
    measure(source, facts)?;
    Ok(kept)
}

/// Counts the packets of the first track.
fn measure(source: &mut dyn Source, facts: &mut Facts) -> Result<(), Error> {
    let length = length(source)?;
    source.rewind()?;
    let stream = MediaSourceStream::new(
        Box::new(SourceAdapter { source, length }),
        MediaSourceStreamOptions::default(),
    );
    let options = FormatOptions::default();
    let broken = |error: symphonia_core::errors::Error| Error::undecodable(error.to_string());
    let mut reader: Box<dyn FormatReader + '_> = match facts.format {
        Format::Mpeg => Box::new(MpaReader::try_new(stream, options).map_err(broken)?),
        Format::Ogg => Box::new(OggReader::try_new(stream, options).map_err(broken)?),
        _ => Box::new(WavReader::try_new(stream, options).map_err(broken)?),
    };
    let Some(track) = reader.tracks().first() else {
        return Err(Error::undecodable("it has no audio track"));
    };
    if let Some(CodecParameters::Audio(audio)) = &track.codec_params {
        facts.sample_rate_hz = audio.sample_rate.map(u64::from);
        facts.channels = audio.channels.as_ref().map(|channels| channels.count() as u64);
    }
    let id = track.id;
    let base = track.time_base;
    let stated = track.num_frames;
    let mut units: u64 = 0;
    for _ in 0..limits::PACKETS_MAX {
        match reader.next_packet() {
            Ok(Some(packet)) if packet.track_id == id => units = units.saturating_add(packet.dur.get()),
            Ok(Some(_)) => {}
            Ok(None) => {
                facts.duration_ms = base.and_then(|base| {
                    let numer = u128::from(base.numer.get());
                    let ms = u128::from(units) * numer * 1_000 / u128::from(base.denom.get());
                    u64::try_from(ms).ok().filter(|_| units > 0)
                });
                return check_complete(facts, stated, units);
            }
            Err(error) => return Err(broken(error)),
        }
    }
    Err(Error::undecodable("it has too many packets"))
}

/// Detects missing frames from the frame count in the header. A few packets may be missing at the ends.
fn check_complete(facts: &Facts, stated: Option<u64>, units: u64) -> Result<(), Error> {
    const SEAM_UNITS: u64 = 4 * 1_152;
    let missing = stated.is_some_and(|stated| units.saturating_add(SEAM_UNITS) < stated);
    if facts.format == Format::Mpeg && missing {
        return Err(Error::truncated());
    }
    Ok(())
}

/// Adapts a borrowed source to the demuxer's trait.
struct SourceAdapter<'s> {
    source: &'s mut dyn Source,
    length: u64,
}

impl Read for SourceAdapter<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.source.read(buffer)
    }
}

impl Seek for SourceAdapter<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.source.seek(to)
    }
}

impl MediaSource for SourceAdapter<'_> {
    fn is_seekable(&self) -> bool {
        true
    }

    fn byte_len(&self) -> Option<u64> {
        Some(self.length)
    }
}

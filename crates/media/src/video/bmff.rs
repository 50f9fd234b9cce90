//! MP4, MOV and M4A. The duration of a track is computed from its sample table and fragments; creation times,
//! locations and names are overwritten, and metadata-only tracks are blanked.

use std::collections::HashMap;

use super::ContainerFacts;
use super::boxes::{Mp4Box, children};
use crate::error::Error;
use crate::format::Format;
use crate::limits;
use crate::range_writer::Overwrites;
use crate::source::{Source, be_u16, be_u32, be_u64, length, read_at};

pub(crate) fn scan(source: &mut dyn Source) -> Result<ContainerFacts, Error> {
    let total = length(source)?;
    let mut film = Movie {
        budget: limits::PARTS_MAX,
        ..Movie::default()
    };
    let top = children(source, 0..total, &mut film.budget)?;
    if top.last().is_some_and(|last| last.body.end != total) {
        return Err(Error::truncated());
    }
    let brand = match top.first() {
        Some(first) if &first.kind == b"ftyp" => read_at(source, first.body.start, 4)?,
        _ => return Err(Error::undecodable("it has no file type box")),
    };
    let movie = top.iter().find(|one| &one.kind == b"moov");
    film.movie(source, movie.ok_or_else(Error::truncated)?)?;
    if !top.iter().any(|one| matches!(&one.kind, b"mdat" | b"moof")) {
        return Err(Error::truncated());
    }
    for one in &top {
        match &one.kind {
            b"moof" => film.fragment(source, one)?,
            b"meta" | b"uuid" | b"udta" => film.blank(one),
            _ => {}
        }
    }
    film.found(&brand, total)
}

#[derive(Default)]
struct Movie {
    budget: usize,
    scale: u64,
    stated: u64,
    tracks: HashMap<u32, Track>,
    patches: Overwrites,
    removed: Vec<&'static str>,
}

#[derive(Default)]
struct Track {
    scale: u64,
    handler: [u8; 4],
    /// In units of the time scale.
    length: u64,
    default_length: u64,
    width: u64,
    height: u64,
    channels: u64,
    sample_rate: u64,
}

impl Movie {
    fn movie(&mut self, source: &mut dyn Source, movie: &Mp4Box) -> Result<(), Error> {
        for one in children(source, movie.body.clone(), &mut self.budget)? {
            match &one.kind {
                b"mvhd" => {
                    let times = self.header(source, &one)?;
                    (self.scale, self.stated) = (times.0, times.1);
                }
                b"trak" => self.track(source, &one)?,
                b"mvex" => self.extends(source, &one)?,
                b"udta" | b"meta" | b"uuid" => self.blank(&one),
                _ => {}
            }
        }
        Ok(())
    }

    fn track(&mut self, source: &mut dyn Source, track: &Mp4Box) -> Result<(), Error> {
        let mut id = 0;
        let mut fresh = Track::default();
        for one in children(source, track.body.clone(), &mut self.budget)? {
            match &one.kind {
                b"tkhd" => {
                    let body = open(source, &one)?;
                    let long = body.first() == Some(&1);
                    id = be_u32(&body, if long { 20 } else { 12 }).ok_or_else(Error::truncated)?;
                    self.blank_times(&one, long);
                }
                b"mdia" => self.media(source, &one, &mut fresh)?,
                b"udta" | b"meta" | b"uuid" => self.blank(&one),
                _ => {}
            }
        }
        // Telemetry tracks record the camera's position over time.
        if matches!(&fresh.handler, b"meta" | b"camm" | b"data") {
            self.blank(track);
            return Ok(());
        }
        self.tracks.insert(id, fresh);
        Ok(())
    }

    fn media(&mut self, source: &mut dyn Source, media: &Mp4Box, track: &mut Track) -> Result<(), Error> {
        for one in children(source, media.body.clone(), &mut self.budget)? {
            match &one.kind {
                b"mdhd" => track.scale = self.header(source, &one)?.0,
                b"hdlr" => {
                    let kind = read_at(source, one.body.start + 8, 4)?;
                    track.handler.copy_from_slice(&kind);
                }
                b"minf" => {
                    for one in children(source, one.body, &mut self.budget)? {
                        if &one.kind == b"stbl" {
                            self.samples(source, &one, track)?;
                        }
                    }
                }
                b"udta" | b"meta" | b"uuid" => self.blank(&one),
                _ => {}
            }
        }
        Ok(())
    }

    fn samples(&mut self, source: &mut dyn Source, table: &Mp4Box, track: &mut Track) -> Result<(), Error> {
        for one in children(source, table.body.clone(), &mut self.budget)? {
            match &one.kind {
                b"stts" => {
                    let body = open(source, &one)?;
                    for (count, delta) in pairs(&body) {
                        track.length = track.length.saturating_add(count.saturating_mul(delta));
                    }
                }
                b"stsd" => {
                    let body = open(source, &one)?;
                    let side = |at: usize| u64::from(be_u16(&body, at).unwrap_or(0));
                    match &track.handler {
                        b"vide" => (track.width, track.height) = (side(40), side(42)),
                        b"soun" => (track.channels, track.sample_rate) = (side(32), side(40)),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn extends(&mut self, source: &mut dyn Source, extends: &Mp4Box) -> Result<(), Error> {
        for one in children(source, extends.body.clone(), &mut self.budget)? {
            if &one.kind == b"trex" {
                let body = open(source, &one)?;
                let track = be_u32(&body, 4).and_then(|id| self.tracks.get_mut(&id));
                if let Some(track) = track {
                    track.default_length = u64::from(be_u32(&body, 12).unwrap_or(0));
                }
            }
        }
        Ok(())
    }

    fn fragment(&mut self, source: &mut dyn Source, fragment: &Mp4Box) -> Result<(), Error> {
        for one in children(source, fragment.body.clone(), &mut self.budget)? {
            if &one.kind != b"traf" {
                continue;
            }
            let mut id = 0;
            let mut usual = None;
            for one in children(source, one.body, &mut self.budget)? {
                let body = match &one.kind {
                    b"tfhd" | b"trun" => open(source, &one)?,
                    _ => continue,
                };
                let flags = be_u32(&body, 0).unwrap_or(0) & 0x00ff_ffff;
                if &one.kind == b"tfhd" {
                    id = be_u32(&body, 4).ok_or_else(Error::truncated)?;
                    usual = usual_length(&body, flags);
                } else if let Some(track) = self.tracks.get_mut(&id) {
                    let more = run_length(&body, flags, usual.unwrap_or(track.default_length));
                    track.length = track.length.saturating_add(more);
                }
            }
        }
        Ok(())
    }

    /// Time scale and duration of a header. Its creation times are overwritten.
    fn header(&mut self, source: &mut dyn Source, one: &Mp4Box) -> Result<(u64, u64), Error> {
        let body = open(source, one)?;
        let long = body.first() == Some(&1);
        self.blank_times(one, long);
        let scale = be_u32(&body, if long { 20 } else { 12 }).map(u64::from);
        let length = if long {
            be_u64(&body, 24).filter(|length| *length != u64::MAX)
        } else {
            be_u32(&body, 16)
                .filter(|length| *length != u32::MAX)
                .map(u64::from)
        };
        Ok((scale.ok_or_else(Error::truncated)?, length.unwrap_or(0)))
    }

    fn blank_times(&mut self, one: &Mp4Box, long: bool) {
        let from = one.body.start + 4;
        let until = from + if long { 16 } else { 8 };
        if until <= one.body.end {
            self.patches.zeros(from..until);
        }
    }

    /// Turns a box into a `free` box of the same size.
    fn blank(&mut self, one: &Mp4Box) {
        self.patches.bytes(one.start + 4, Vec::from(*b"free"));
        self.patches.zeros(one.body.clone());
        let what = match &one.kind {
            b"trak" => "telemetry",
            _ => "tags",
        };
        if !self.removed.contains(&what) {
            self.removed.push(what);
        }
    }

    fn found(self, brand: &[u8], total: u64) -> Result<ContainerFacts, Error> {
        let of = |handler: &[u8; 4]| {
            let mut tracks: Vec<&Track> = self
                .tracks
                .values()
                .filter(|track| &track.handler == handler)
                .collect();
            tracks.sort_by_key(|track| std::cmp::Reverse(track.length));
            tracks.first().copied()
        };
        let (picture, sound) = (of(b"vide"), of(b"soun"));
        let format = match (picture, sound, brand) {
            (None, None, _) => return Err(Error::undecodable("it has neither a video nor an audio track")),
            (_, _, b"qt  ") => Format::QuickTime,
            (None, Some(_), _) => Format::AudioMp4,
            (Some(_), _, _) => Format::Mp4,
        };
        let in_ms = |length: u64, scale: u64| {
            let ms = u128::from(length) * 1_000 / u128::from(scale.max(1));
            u64::try_from(ms).unwrap_or(u64::MAX)
        };
        let tracks = self.tracks.values().map(|track| in_ms(track.length, track.scale));
        let longest = tracks.max().unwrap_or(0).max(in_ms(self.stated, self.scale));
        let known = |number: u64| Some(number).filter(|number| *number > 0);
        Ok(ContainerFacts {
            format,
            width: picture.and_then(|track| known(track.width)),
            height: picture.and_then(|track| known(track.height)),
            duration_ms: known(longest),
            sample_rate_hz: sound.and_then(|track| known(track.sample_rate)),
            channels: sound.and_then(|track| known(track.channels)),
            pieces: self.patches.apply(total),
            removed: self.removed,
        })
    }
}

fn open(source: &mut dyn Source, one: &Mp4Box) -> Result<Vec<u8>, Error> {
    read_at(source, one.body.start, one.body.end - one.body.start)
}

/// Sample counts and durations of a sample table.
fn pairs(body: &[u8]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let rows = body.get(8..).unwrap_or_default().chunks_exact(8);
    rows.map(|row| {
        let number = |at| u64::from(be_u32(row, at).unwrap_or(0));
        (number(0), number(4))
    })
}

/// The default sample duration set by a fragment's header.
fn usual_length(body: &[u8], flags: u32) -> Option<u64> {
    if flags & 0x08 == 0 {
        return None;
    }
    let at = 8 + if flags & 0x01 == 0 { 0 } else { 8 } + if flags & 0x02 == 0 { 0 } else { 4 };
    be_u32(body, at).map(u64::from)
}

/// The total duration of the samples of a track run.
fn run_length(body: &[u8], flags: u32, usual: u64) -> u64 {
    let count = u64::from(be_u32(body, 4).unwrap_or(0));
    if flags & 0x100 == 0 {
        return count.saturating_mul(usual);
    }
    let from = 8 + if flags & 0x01 == 0 { 0 } else { 4 } + if flags & 0x04 == 0 { 0 } else { 4 };
    let fields = [0x100, 0x200, 0x400, 0x800]
        .iter()
        .filter(|flag| flags & **flag != 0);
    let rows = body
        .get(from..)
        .unwrap_or_default()
        .chunks_exact(fields.count() * 4);
    let rows = rows.take(usize::try_from(count).unwrap_or(usize::MAX));
    rows.map(|row| u64::from(be_u32(row, 0).unwrap_or(0))).sum()
}

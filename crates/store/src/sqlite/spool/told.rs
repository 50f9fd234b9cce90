//! What the lines about one run come to: how it began, what it said, how it ended. The tables get it from the
//! lines themselves, a writer that brings it along has a copy.

use engine::port::{EncodedEvent, LifecycleRecord, NewRun, RunEnd};

use super::line::Note;

#[derive(Clone, Debug, Default)]
pub(in crate::sqlite) struct Told<'l> {
    pub(in crate::sqlite) new: Option<&'l NewRun>,
    pub(in crate::sqlite) events: Vec<&'l EncodedEvent>,
    pub(in crate::sqlite) end: Option<&'l RunEnd>,
}

impl<'l> Told<'l> {
    pub(in crate::sqlite) fn add(&mut self, note: &'l Note) {
        match note {
            Note::Booked(LifecycleRecord::Started(new)) => self.new = Some(new),
            Note::Said { events, end, .. } => {
                self.events.extend(events);
                self.end = end.as_ref();
            }
            // It has a writer, which ends it, or it has ended already: the first word counts.
            Note::Booked(LifecycleRecord::Ended { .. }) if !self.events.is_empty() || self.end.is_some() => {}
            Note::Booked(LifecycleRecord::Ended { last, end, .. }) => {
                self.events.extend(last);
                self.end = Some(end);
            }
        }
    }
}

/// The same, kept.
#[derive(Debug)]
pub(in crate::sqlite) struct Held {
    pub(in crate::sqlite) new: Option<NewRun>,
    pub(in crate::sqlite) events: Vec<EncodedEvent>,
    pub(in crate::sqlite) end: Option<RunEnd>,
}

impl Held {
    pub(in crate::sqlite) fn told(&self) -> Told<'_> {
        Told {
            new: self.new.as_ref(),
            events: self.events.iter().collect(),
            end: self.end.as_ref(),
        }
    }
}

impl From<Told<'_>> for Held {
    fn from(told: Told<'_>) -> Self {
        Self {
            new: told.new.cloned(),
            events: told.events.into_iter().cloned().collect(),
            end: told.end.cloned(),
        }
    }
}

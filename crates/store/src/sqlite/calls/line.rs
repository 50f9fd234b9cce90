//! One entry in the accounts of calls: what the tables get, and the line of JSON that the log keeps until they
//! have it. Besides bookings there are the events of a run that was only booked.

use std::borrow::Cow;
use std::sync::Arc;

use engine::Tenant;
use engine::port::{Booking, End, Finish, Kind, NewRun, Rendered, Spent};
use ir::RunId;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sqlite) struct Line {
    pub(in crate::sqlite) tenant: Tenant,
    pub(in crate::sqlite) note: Note,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum Note {
    Booked(Booking),
    /// What a run said while nobody else could know of it, and how it ended if it did.
    Said {
        run: RunId,
        events: Vec<Rendered>,
        end: Option<End>,
    },
}

impl Note {
    pub(in crate::sqlite) fn run(&self) -> RunId {
        match self {
            Self::Booked(Booking::Enter(new)) => new.id,
            Self::Said { run, .. } | Self::Booked(Booking::Close { run, .. }) => *run,
        }
    }
}

impl Line {
    /// Puts the line behind what is there.
    pub(super) fn write(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        let tenant = Cow::Borrowed(self.tenant.as_str());
        match &self.note {
            Note::Booked(Booking::Enter(new)) => {
                text.push(b'+');
                serde_json::to_writer(&mut *text, &Enter::of(tenant, new))?;
            }
            Note::Said { run, events, end } => {
                text.push(b'=');
                serde_json::to_writer(&mut *text, &Say::of(tenant, *run, events, end.as_ref()))?;
            }
            Note::Booked(Booking::Close { run, last, end }) => {
                text.push(b'-');
                serde_json::to_writer(&mut *text, &Close::of(tenant, *run, last.as_ref(), end))?;
            }
        }
        text.push(b'\n');
        Ok(())
    }

    pub(super) fn is_of(&self, tenant: &Tenant, run: RunId) -> bool {
        self.note.run() == run && self.tenant == *tenant
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        let (mark, json) = text.split_at_checked(1)?;
        match mark {
            "+" => serde_json::from_str::<Enter<'_>>(json).ok().map(Enter::line),
            "=" => serde_json::from_str::<Say<'_>>(json).ok()?.line(),
            "-" => serde_json::from_str::<Close<'_>>(json).ok()?.line(),
            _ => None,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Enter<'a> {
    tenant: Cow<'a, str>,
    id: RunId,
    module: Cow<'a, str>,
    command: Cow<'a, str>,
    created_at_ms: u64,
    client: Cow<'a, str>,
}

impl<'a> Enter<'a> {
    fn of(tenant: Cow<'a, str>, new: &'a NewRun) -> Self {
        Self {
            tenant,
            id: new.id,
            module: Cow::Borrowed(&new.module),
            command: Cow::Borrowed(&new.command),
            created_at_ms: new.created_at_ms,
            client: Cow::Borrowed(&new.client),
        }
    }

    fn line(self) -> Line {
        Line {
            tenant: Tenant::new(&self.tenant),
            note: Note::Booked(Booking::Enter(NewRun {
                id: self.id,
                module: self.module.into_owned(),
                command: self.command.into_owned(),
                created_at_ms: self.created_at_ms,
                client: self.client.into_owned(),
                once: None,
            })),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Close<'a> {
    tenant: Cow<'a, str>,
    id: RunId,
    #[serde(flatten)]
    end: Ended<'a>,
    last: Option<Event<'a>>,
}

impl<'a> Close<'a> {
    fn of(tenant: Cow<'a, str>, id: RunId, last: Option<&'a Rendered>, end: &'a End) -> Self {
        Self {
            tenant,
            id,
            end: Ended::of(end),
            last: last.map(Event::of),
        }
    }

    fn line(self) -> Option<Line> {
        let last = match self.last {
            None => None,
            Some(last) => Some(last.rendered()?),
        };
        Some(Line {
            tenant: Tenant::new(&self.tenant),
            note: Note::Booked(Booking::Close {
                run: self.id,
                last,
                end: self.end.end(),
            }),
        })
    }
}

#[derive(Serialize, Deserialize)]
struct Say<'a> {
    tenant: Cow<'a, str>,
    id: RunId,
    events: Vec<Event<'a>>,
    end: Option<Ended<'a>>,
}

impl<'a> Say<'a> {
    fn of(tenant: Cow<'a, str>, id: RunId, events: &'a [Rendered], end: Option<&'a End>) -> Self {
        Self {
            tenant,
            id,
            events: events.iter().map(Event::of).collect(),
            end: end.map(Ended::of),
        }
    }

    fn line(self) -> Option<Line> {
        let events: Option<Vec<Rendered>> = self.events.into_iter().map(Event::rendered).collect();
        Some(Line {
            tenant: Tenant::new(&self.tenant),
            note: Note::Said {
                run: self.id,
                events: events?,
                end: self.end.map(Ended::end),
            },
        })
    }
}

#[derive(Serialize, Deserialize)]
struct Ended<'a> {
    code: Option<Cow<'a, str>>,
    at_ms: u64,
    review: Option<Cow<'a, str>>,
    spent: Cow<'a, [Spent]>,
}

impl<'a> Ended<'a> {
    fn of(end: &'a End) -> Self {
        Self {
            code: end.finish.code.as_deref().map(Cow::Borrowed),
            at_ms: end.finish.at_ms,
            review: end.review.as_deref().map(Cow::Borrowed),
            spent: Cow::Borrowed(&end.spent),
        }
    }

    fn end(self) -> End {
        End {
            finish: Finish {
                code: self.code.map(Cow::into_owned),
                at_ms: self.at_ms,
            },
            review: self.review.map(Cow::into_owned),
            spent: self.spent.into_owned(),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Event<'a> {
    kind: Cow<'a, str>,
    seq: Option<u64>,
    body: Cow<'a, str>,
}

impl<'a> Event<'a> {
    fn of(event: &'a Rendered) -> Self {
        Self {
            kind: Cow::Borrowed(event.kind.as_str()),
            seq: event.seq,
            body: Cow::Borrowed(&event.body),
        }
    }

    /// An event of a kind that nobody knows is none of ours.
    fn rendered(self) -> Option<Rendered> {
        Some(Rendered {
            kind: Kind::find(&self.kind)?,
            seq: self.seq,
            body: Arc::from(self.body),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::Tenant;
    use engine::port::{Booking, End, Kind, NewRun, Rendered, Spent};
    use ir::RunId;

    use super::{Line, Note};

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let run = RunId::from_parts(7, 8);
        let new = NewRun {
            id: run,
            module: String::from("a\n\"module\""),
            command: String::from("{\"a\":\"\\u0000\"}"),
            created_at_ms: 3,
            client: String::from("c"),
            once: None,
        };
        let mut end = End::new(Some(String::from("E2010")), 9, vec![Spent::unknown()]);
        let plain = Booking::Close {
            run,
            last: None,
            end: end.clone(),
        };
        end.review = Some(String::from("because"));
        let last = Some(Rendered {
            kind: Kind::Final,
            seq: Some(4),
            body: Arc::from("{\"a\":\n\"ä\"}"),
        });
        let said = |end| Note::Said {
            run,
            events: last.iter().cloned().chain(last.clone()).collect(),
            end,
        };
        let said = [said(None), said(Some(end.clone()))];
        let bookings = [Booking::Enter(new), plain, Booking::Close { run, last, end }];
        for note in bookings.map(Note::Booked).into_iter().chain(said) {
            let line = Line {
                tenant: Tenant::new("t"),
                note,
            };
            let mut text = Vec::new();
            line.write(&mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text.lines().count(), 1);
            assert_eq!(Line::read(text.trim_end()), Some(line));
        }
    }

    #[test]
    fn what_is_no_line_is_none() {
        for text in ["", "+", "+{}", "=[]", "-{\"tenant\":\"t\"", "?{}", "ä"] {
            assert_eq!(Line::read(text), None, "{text}");
        }
    }
}

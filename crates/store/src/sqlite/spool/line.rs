//! One entry in the accounts of calls: what the tables get, and the line that the log keeps until they have it. Besides
//! bookings there are the events of a run that was only booked. A line is JSON; its long texts stand behind it as they
//! are, see [`super::text`].

use std::borrow::Cow;
use std::sync::Arc;

use engine::Tenant;
use engine::port::{
    AttemptUsage, EncodedEvent, EventKind, LifecycleRecord, NewRun, RunEnd, RunKind, RunOutcome,
};
use ir::RunId;
use serde::{Deserialize, Serialize};

use super::text::{Tail, Text};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sqlite) struct Line {
    pub(in crate::sqlite) tenant: Tenant,
    pub(in crate::sqlite) note: Note,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum Note {
    Booked(LifecycleRecord),
    /// What a run said while no reader could know of it, and how it ended if it did.
    Said {
        run: RunId,
        events: Vec<EncodedEvent>,
        end: Option<RunEnd>,
    },
}

impl Note {
    pub(in crate::sqlite) fn run(&self) -> RunId {
        match self {
            Self::Booked(booking) => booking.run(),
            Self::Said { run, .. } => *run,
        }
    }
}

impl Line {
    /// Puts the line behind what is there.
    pub(super) fn write(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        let tenant = Cow::Borrowed(self.tenant.as_str());
        match &self.note {
            Note::Booked(LifecycleRecord::Started(new)) => {
                text.push(b'+');
                let enter = Enter::of(tenant, new);
                serde_json::to_writer(&mut *text, &enter)?;
                enter.command.put_behind(&new.command, text);
            }
            Note::Said { run, events, end } => {
                text.push(b'=');
                let say = Say::of(tenant, *run, events, end.as_ref());
                serde_json::to_writer(&mut *text, &say)?;
                for (event, rendered) in say.events.iter().zip(events) {
                    event.body.put_behind(&rendered.body, text);
                }
            }
            Note::Booked(LifecycleRecord::Ended { run, last, end }) => {
                text.push(b'-');
                let close = Close::of(tenant, *run, last.as_ref(), end);
                serde_json::to_writer(&mut *text, &close)?;
                for (event, rendered) in close.last.iter().zip(last) {
                    event.body.put_behind(&rendered.body, text);
                }
            }
        }
        text.push(b'\n');
        Ok(())
    }

    pub(super) fn is_of(&self, tenant: &Tenant, run: RunId) -> bool {
        self.note.run() == run && self.tenant == *tenant
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        let (mark, rest) = text.split_at_checked(1)?;
        let (line, tail) = match mark {
            "+" => Tail::behind(rest, Enter::line),
            "=" => Tail::behind(rest, Say::line),
            "-" => Tail::behind(rest, Close::line),
            _ => None,
        }?;
        // One that was not written to its end lacks something, and one with something left is none of ours.
        tail.is_empty().then_some(line)
    }
}

#[derive(Serialize, Deserialize)]
struct Enter<'a> {
    tenant: Cow<'a, str>,
    id: RunId,
    module: Cow<'a, str>,
    command: Text<'a>,
    created_at_ms: u64,
    client: Cow<'a, str>,
}

impl<'a> Enter<'a> {
    fn of(tenant: Cow<'a, str>, new: &'a NewRun) -> Self {
        Self {
            tenant,
            id: new.id,
            module: Cow::Borrowed(new.kind.module().unwrap_or_default()),
            command: Text::of(&new.command),
            created_at_ms: new.created_at_ms,
            client: Cow::Borrowed(&new.client),
        }
    }

    fn line(self, tail: &mut Tail<'_>) -> Option<Line> {
        Some(Line {
            tenant: Tenant::new(&self.tenant),
            note: Note::Booked(LifecycleRecord::Started(NewRun {
                id: self.id,
                kind: match self.module.is_empty() {
                    true => RunKind::Relay,
                    false => RunKind::Module(self.module.into_owned()),
                },
                command: String::from(tail.take(&self.command)?),
                created_at_ms: self.created_at_ms,
                client: self.client.into_owned(),
                once: None,
            })),
        })
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
    fn of(tenant: Cow<'a, str>, id: RunId, last: Option<&'a EncodedEvent>, end: &'a RunEnd) -> Self {
        Self {
            tenant,
            id,
            end: Ended::of(end),
            last: last.map(Event::of),
        }
    }

    fn line(self, tail: &mut Tail<'_>) -> Option<Line> {
        let last = match self.last {
            None => None,
            Some(last) => Some(last.rendered(tail)?),
        };
        Some(Line {
            tenant: Tenant::new(&self.tenant),
            note: Note::Booked(LifecycleRecord::Ended {
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
    fn of(tenant: Cow<'a, str>, id: RunId, events: &'a [EncodedEvent], end: Option<&'a RunEnd>) -> Self {
        Self {
            tenant,
            id,
            events: events.iter().map(Event::of).collect(),
            end: end.map(Ended::of),
        }
    }

    fn line(self, tail: &mut Tail<'_>) -> Option<Line> {
        let events = self.events.into_iter().map(|event| event.rendered(tail));
        let events: Option<Vec<EncodedEvent>> = events.collect();
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
    spent: Cow<'a, [AttemptUsage]>,
}

impl<'a> Ended<'a> {
    fn of(end: &'a RunEnd) -> Self {
        Self {
            code: end.finish.code.as_deref().map(Cow::Borrowed),
            at_ms: end.finish.at_ms,
            review: end.review.as_deref().map(Cow::Borrowed),
            spent: Cow::Borrowed(&end.usage),
        }
    }

    fn end(self) -> RunEnd {
        RunEnd {
            finish: RunOutcome {
                code: self.code.map(Cow::into_owned),
                at_ms: self.at_ms,
            },
            review: self.review.map(Cow::into_owned),
            usage: self.spent.into_owned(),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Event<'a> {
    kind: Cow<'a, str>,
    seq: Option<u64>,
    body: Text<'a>,
}

impl<'a> Event<'a> {
    fn of(event: &'a EncodedEvent) -> Self {
        Self {
            kind: Cow::Borrowed(event.kind.as_str()),
            seq: event.seq,
            body: Text::of(&event.body),
        }
    }

    /// An event of an unknown kind is skipped.
    fn rendered(self, tail: &mut Tail<'_>) -> Option<EncodedEvent> {
        Some(EncodedEvent {
            kind: EventKind::find(&self.kind)?,
            seq: self.seq,
            body: Arc::from(tail.take(&self.body)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::Tenant;
    use engine::port::{AttemptUsage, EncodedEvent, EventKind, LifecycleRecord, NewRun, RunEnd, RunKind};
    use ir::RunId;

    use super::{Line, Note};

    /// One of each kind, with this text where texts are long.
    fn lines(long: &str) -> Vec<Line> {
        let run = RunId::from_parts(7, 8);
        let new = NewRun {
            id: run,
            kind: RunKind::Module(String::from("a\n\"module\"")),
            command: String::from(long),
            created_at_ms: 3,
            client: String::from("c"),
            once: None,
        };
        let mut end = RunEnd::new(Some(String::from("E2010")), 9, vec![AttemptUsage::unknown()]);
        let plain = LifecycleRecord::Ended {
            run,
            last: None,
            end: end.clone(),
        };
        end.review = Some(String::from("because"));
        let last = Some(EncodedEvent {
            kind: EventKind::Final,
            seq: Some(4),
            body: Arc::from(long),
        });
        let said = |end| Note::Said {
            run,
            events: last.iter().cloned().chain(last.clone()).collect(),
            end,
        };
        let said = [said(None), said(Some(end.clone()))];
        let bookings = [
            LifecycleRecord::Started(new),
            plain,
            LifecycleRecord::Ended { run, last, end },
        ];
        let notes = bookings.map(Note::Booked).into_iter().chain(said);
        let line = |note| Line {
            tenant: Tenant::new("t"),
            note,
        };
        notes.map(line).collect()
    }

    const LONG: [&str; 6] = [
        "{\"a\":\"\\u0000\"}",
        "{\"a\":\n\"ä\"}",
        "",
        "ä",
        "no JSON\r",
        "{\"tenant\":1}{}\u{0}",
    ];

    fn written(line: &Line) -> String {
        let mut text = Vec::new();
        line.write(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for line in LONG.into_iter().flat_map(lines) {
            let text = written(&line);
            let text = text.strip_suffix('\n').unwrap();
            assert!(!text.contains('\n'), "{text}");
            assert_eq!(Line::read(text), Some(line));
        }
    }

    #[test]
    fn a_line_that_was_cut_off_or_run_into_is_none() {
        for line in LONG.into_iter().flat_map(lines) {
            let text = written(&line);
            let text = text.strip_suffix('\n').unwrap();
            for (end, _) in text.char_indices() {
                assert_eq!(text.get(..end).and_then(Line::read), None, "{text} to {end}");
            }
            assert_eq!(Line::read(&format!("{text}x")), None);
        }
    }

    /// What a cogn left behind that wrote long texts as JSON, too.
    #[test]
    fn a_line_of_an_older_cogn_is_read() {
        let old = [
            r#"+{"tenant":"t","id":"sess_00000000070000000000000008","module":"a\n\"module\"","command":"{\"a\":\n\"ä\"}","created_at_ms":3,"client":"c"}"#,
            r#"-{"tenant":"t","id":"sess_00000000070000000000000008","code":"E2010","at_ms":9,"review":null,"spent":[{"attempt":0,"backend":null,"model":null,"outcome":"unknown","input_tokens":null,"output_tokens":null,"estimated_tokens":null}],"last":null}"#,
            r#"-{"tenant":"t","id":"sess_00000000070000000000000008","code":"E2010","at_ms":9,"review":"because","spent":[{"attempt":0,"backend":null,"model":null,"outcome":"unknown","input_tokens":null,"output_tokens":null,"estimated_tokens":null}],"last":{"kind":"final","seq":4,"body":"{\"a\":\n\"ä\"}"}}"#,
            r#"={"tenant":"t","id":"sess_00000000070000000000000008","events":[{"kind":"final","seq":4,"body":"{\"a\":\n\"ä\"}"},{"kind":"final","seq":4,"body":"{\"a\":\n\"ä\"}"}],"end":null}"#,
        ];
        for (text, line) in old.into_iter().zip(lines("{\"a\":\n\"ä\"}")) {
            assert_eq!(Line::read(text), Some(line));
        }
    }

    #[test]
    fn what_is_no_line_is_none() {
        for text in ["", "+", "+{}", "=[]", "-{\"tenant\":\"t\"", "?{}", "ä"] {
            assert_eq!(Line::read(text), None, "{text}");
        }
    }
}

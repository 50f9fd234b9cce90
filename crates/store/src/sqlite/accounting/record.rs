//! A record of the accounting log: one line of JSON.

use engine::Tenant;
use engine::port::{AttemptUsage, NewRun, RunEnd};
use ir::RunId;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(super) enum Record {
    Start {
        tenant: String,
        run: RunId,
        command: String,
        client: String,
        created_at_ms: u64,
    },
    End {
        tenant: String,
        run: RunId,
        code: Option<String>,
        at_ms: u64,
        usage: Vec<AttemptUsage>,
    },
}

impl Record {
    pub(super) fn start(tenant: &Tenant, new: &NewRun) -> Self {
        Self::Start {
            tenant: String::from(tenant.as_str()),
            run: new.id,
            command: new.command.clone(),
            client: new.client.clone(),
            created_at_ms: new.created_at_ms,
        }
    }

    pub(super) fn end(tenant: &Tenant, run: RunId, end: RunEnd) -> Self {
        Self::End {
            tenant: String::from(tenant.as_str()),
            run,
            code: end.finish.code,
            at_ms: end.finish.at_ms,
            usage: end.usage,
        }
    }

    /// Appends the line to `text`.
    pub(super) fn encode(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        let start = text.len();
        let written = serde_json::to_writer(&mut *text, self);
        match written {
            Ok(()) => text.push(b'\n'),
            Err(_) => text.truncate(start),
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use engine::Tenant;
    use engine::port::{AttemptUsage, NewRun, RunEnd, RunKind};
    use ir::RunId;

    use super::Record;
    use crate::sqlite::accounting::decoded_log::DecodedLog;

    fn records() -> [Record; 2] {
        let (tenant, run) = (Tenant::new("t\n"), RunId::from_parts(7, 8));
        let new = NewRun {
            id: run,
            kind: RunKind::Relay,
            command: String::from("{\"a\":\n\"\u{e4}\"}"),
            created_at_ms: 3,
            client: String::from("c"),
            once: None,
        };
        let end = RunEnd::new(Some(String::from("E2010")), 9, vec![AttemptUsage::unknown()]);
        [Record::start(&tenant, &new), Record::end(&tenant, run, end)]
    }

    #[test]
    fn records_are_decoded_as_encoded() {
        let mut text = Vec::new();
        for record in records() {
            record.encode(&mut text).unwrap();
        }
        let log = DecodedLog::of(&text);
        assert_eq!((log.records, log.unreadable), (records().to_vec(), 0));
    }

    #[test]
    fn unreadable_lines_are_counted() {
        let mut text = Vec::new();
        let [start, end] = records();
        start.encode(&mut text).unwrap();
        let whole = text.len();
        end.encode(&mut text).unwrap();
        for cut in whole + 1..text.len() - 1 {
            let log = DecodedLog::of(&text[..cut]);
            assert_eq!((log.records, log.unreadable), (vec![start.clone()], 1), "{cut}");
        }
        for (lines, unreadable) in [
            (b"{}\n[]\nx\n\xff".as_slice(), 4),
            (b"\0\0\0\n", 1),
            (b"\n\n", 0),
            (b"", 0),
        ] {
            let log = DecodedLog::of(lines);
            assert_eq!((log.records, log.unreadable), (Vec::new(), unreadable));
        }
        // Zeros in place of the first record.
        text[..whole].fill(0);
        let log = DecodedLog::of(&text);
        assert_eq!((log.records, log.unreadable), (vec![end], 1));
    }
}

//! `cogn usage`: the usage of the runs of a server, read from its journal.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use engine::port::{Clock, DAY_MS, UsageFilter, UsageRow};
use serde_json::{Value, json};
use tenancy::Tenant;

use crate::clock::{date, minute};
use crate::duration::Duration;
use crate::exit::Exit;
use crate::output::Output;
use crate::server_setup;
use crate::table::{Align, Table};
use crate::wiring::{self, SystemClock};

#[derive(Debug, Args)]
pub(crate) struct Usage {
    /// The journal file of the server.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Only runs of this tenant.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Only runs that ended within this time: 24h, 30d.
    #[arg(long, value_name = "TIME")]
    since: Option<Duration>,
    /// The columns to group by.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [By::Day, By::Key, By::Module, By::Model])]
    by: Vec<By>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    Day,
    Key,
    Module,
    Model,
}

impl Usage {
    pub(crate) fn run(self, output: &Output) -> Result<Exit> {
        let settings = server_setup::command_store_settings(self.journal, output)?;
        let now_ms = SystemClock.now_ms();
        let filter = UsageFilter {
            since_ms: self.since.map(|time| now_ms.saturating_sub(time.as_millis())),
            until_ms: None,
            by_client: self.by.contains(&By::Key),
            by_module: self.by.contains(&By::Module),
            by_model: self.by.contains(&By::Model),
            by_day: self.by.contains(&By::Day),
        };
        let tenant = self.tenant.as_deref().map(Tenant::new);
        let lines = wiring::current_thread_runtime()?.block_on(async {
            let stores = store::open(&settings).await?;
            let lines = stores.archive.usage(tenant.as_ref(), &filter).await;
            stores.close().await;
            anyhow::Ok(lines?)
        })?;
        if output.json {
            let lines: Vec<Value> = lines.iter().map(value).collect();
            output.json(&lines)?;
            return Ok(Exit::Success);
        }
        if lines.is_empty() {
            output.note("No usage recorded.");
            return Ok(Exit::Success);
        }
        if let Some(since_ms) = filter.since_ms {
            output.note(format!("since {} UTC", minute(since_ms)));
        }
        table(&self.by, &lines).print(output)?;
        Ok(Exit::Success)
    }
}

fn value(line: &UsageRow) -> Value {
    json!({
        "day": line.day.map(|day| date(day.saturating_mul(DAY_MS))),
        "key": line.client,
        "module": line.module,
        "model": line.model,
        "runs": line.runs,
        "attempts": line.attempts,
        "input_tokens": line.input_tokens,
        "output_tokens": line.output_tokens,
        "estimated_tokens": line.estimated_tokens,
        "unknown": line.unknown,
    })
}

/// The columns to group by, in a fixed order, and the counts. An unknown count is `?`.
fn table(by: &[By], lines: &[UsageRow]) -> Table {
    let groups = [By::Day, By::Key, By::Module, By::Model];
    let groups: Vec<By> = groups.into_iter().filter(|group| by.contains(group)).collect();
    let counts = ["RUNS", "ATTEMPTS", "INPUT TOKENS", "OUTPUT TOKENS", "UNKNOWN"];
    let groups_shown = groups.iter().map(|group| (group.heading(), Align::Left));
    let mut table = Table::new(groups_shown.chain(counts.map(|heading| (heading, Align::Right))));
    let tokens = |count: Option<u64>| count.map_or_else(|| String::from("?"), |count| count.to_string());
    for line in lines {
        let mut row: Vec<String> = groups.iter().map(|group| group.of(line)).collect();
        row.extend([
            line.runs.to_string(),
            line.attempts.to_string(),
            tokens(line.input_tokens),
            tokens(line.output_tokens),
            line.unknown.to_string(),
        ]);
        table.push(row);
    }
    table
}

impl By {
    fn heading(self) -> &'static str {
        match self {
            Self::Day => "DAY (UTC)",
            Self::Key => "KEY",
            Self::Module => "MODULE",
            Self::Model => "MODEL",
        }
    }

    fn of(self, line: &UsageRow) -> String {
        let value = match self {
            Self::Day => line.day.map(|day| date(day.saturating_mul(DAY_MS))),
            Self::Key => line.client.clone(),
            Self::Module => line.module.clone(),
            Self::Model => line.model.clone(),
        };
        value.unwrap_or_else(|| String::from("-"))
    }
}

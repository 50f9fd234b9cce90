//! One entry in the accounts of calls, as the JSON that the statements read and the log keeps.

use engine::Tenant;
use engine::port::{Booking, End, NewRun};
use ir::RunId;
use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Enter(String),
    Close(String),
}

impl Line {
    pub(super) fn of(tenant: &Tenant, booking: &Booking) -> Self {
        match booking {
            Booking::Enter(new) => Self::Enter(enter(tenant, new).to_string()),
            Booking::Close { run, end } => Self::Close(close(tenant, *run, end).to_string()),
        }
    }

    pub(super) fn to_text(&self) -> String {
        match self {
            Self::Enter(json) => format!("+{json}\n"),
            Self::Close(json) => format!("-{json}\n"),
        }
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        let (mark, json) = text.split_at_checked(1)?;
        serde_json::from_str::<serde::de::IgnoredAny>(json).ok()?;
        match mark {
            "+" => Some(Self::Enter(String::from(json))),
            "-" => Some(Self::Close(String::from(json))),
            _ => None,
        }
    }
}

fn enter(tenant: &Tenant, new: &NewRun) -> Value {
    json!({
        "tenant": tenant.as_str(),
        "id": new.id.to_string(),
        "module": new.module,
        "command": new.command,
        "created_at_ms": new.created_at_ms,
        "client": new.client,
    })
}

fn close(tenant: &Tenant, run: RunId, end: &End) -> Value {
    json!({
        "tenant": tenant.as_str(),
        "id": run.to_string(),
        "state": end.finish.state().as_str(),
        "code": end.finish.code,
        "at_ms": end.finish.at_ms,
        "spent": end.spent,
    })
}

//! Sends the requests of `module::conformance::server` to a running server and returns its responses. The
//! responses are evaluated in the crate `module`.

mod client;
mod discovery;
pub(crate) mod limits;
mod websocket;

use std::collections::HashMap;

use anyhow::Result;
use module::conformance::server::{
    Capability, Check, CheckEnd, CheckRow, ServerReport, ServerResponse, TestModule, TestModules, checks,
};

pub(crate) use client::Client;
pub(crate) use discovery::RequestedModule;

use crate::output::hinted;

/// Runs all checks up to a level.
pub(crate) async fn examine(client: &Client, named: &[RequestedModule], level: u8) -> Result<ServerReport> {
    let subjects = discovery::discover(client, named).await?;
    let cast = ModuleSelection::rehearse(client, &subjects).await?;
    let mut rows = Vec::new();
    for check in checks().into_iter().filter(|check| check.level <= level) {
        let row = match cast.part(check.need) {
            Ok(subject) => {
                let stop = make(client, &check, subject).await.err();
                CheckRow::new(&check, Some(&subject.name), stop)
            }
            Err(reason) => CheckRow::new(&check, None, Some(CheckEnd::Skipped(reason.clone()))),
        };
        rows.push(row);
    }
    Ok(ServerReport::new(client.shown(), level, rows))
}

/// Runs one check, request by request.
async fn make(client: &Client, check: &Check, subject: &TestModule) -> Result<(), CheckEnd> {
    let mut answers: Vec<ServerResponse> = Vec::new();
    while let Some(ask) = check.next(subject, &answers)? {
        if answers.len() >= limits::REQUESTS_PER_CHECK_MAX {
            return Err(CheckEnd::Failed(String::from(
                "the check exceeded its request limit",
            )));
        }
        let answer = client.send(&ask).await;
        answers.push(answer.map_err(|reason| CheckEnd::Failed(format!("no response: {reason}")))?);
    }
    Ok(())
}

/// The module for each kind of check, or why there is none.
struct ModuleSelection(HashMap<&'static str, Result<TestModule, String>>);

impl ModuleSelection {
    async fn rehearse(client: &Client, subjects: &TestModules) -> Result<Self> {
        let mut parts = HashMap::new();
        for need in Capability::ALL {
            let part = match subjects.choose(need) {
                None => Err(format!(
                    "the server lists no {} with a known input",
                    need.description()
                )),
                Some(subject) => match client.send(&subject.probe_request()).await {
                    Ok(answer) => match TestModule::unsuitable_reason(&answer) {
                        None => Ok(subject),
                        Some(reason) => Err(format!("module `{}` is not suitable: {reason}", subject.name)),
                    },
                    Err(reason) => Err(format!("module `{}` does not respond: {reason}", subject.name)),
                },
            };
            parts.insert(need.description(), part);
        }
        let cast = Self(parts);
        match cast.part(Capability::Both) {
            Ok(_) => Ok(cast),
            Err(reason) => Err(hinted(
                format!("nothing can be checked: {reason}"),
                "`cogn conformance --emit-modules DIR` writes modules for the server; or select one of its modules with --module NAME --input FILE",
            )),
        }
    }

    fn part(&self, need: Capability) -> Result<&TestModule, String> {
        match self.0.get(need.description()) {
            Some(Ok(subject)) => Ok(subject),
            Some(Err(reason)) => Err(reason.clone()),
            None => Err(String::from("no module was selected")),
        }
    }
}

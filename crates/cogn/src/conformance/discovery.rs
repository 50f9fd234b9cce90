//! Discovery of the modules of a server from its module list.

use anyhow::{Result, anyhow};
use module::conformance::server::{ListedModule, ServerRequest, ServerResponse, TestModules};
use serde_json::Value;

use super::client::Client;
use super::limits;
use crate::output::hinted;

/// A module selected with `--module`, with its input if given.
#[derive(Clone, Debug)]
pub(crate) struct RequestedModule {
    pub(crate) name: String,
    pub(crate) input: Option<Value>,
}

/// The modules selected by the user, or those that the server lists.
pub(super) async fn discover(client: &Client, named: &[RequestedModule]) -> Result<TestModules> {
    let listing = client.send(&ServerRequest::list_modules()).await;
    let listing = listing.map_err(|reason| {
        hinted(
            format!("{} cannot be reached: {reason}", client.shown()),
            "check that the server is running and that the URL is correct",
        )
    })?;
    if [401, 403].contains(&listing.status) {
        return Err(hinted(
            format!("{} requires authentication", client.shown()),
            "use --key-env NAME, the environment variable with a key for it",
        ));
    }
    let rows = rows(&listing);
    let mut wanted = named.to_vec();
    if wanted.is_empty() {
        let names = rows.iter().filter_map(|row| row.get("name")?.as_str());
        // A name becomes part of a URL path, so only plain names are accepted.
        let plain = names.filter(|name| is_plain(name)).take(limits::MODULES_MAX);
        wanted.extend(plain.map(|name| RequestedModule {
            name: String::from(name),
            input: None,
        }));
    }
    let mut listed = Vec::new();
    for RequestedModule { name, input } in wanted {
        if !is_plain(&name) {
            return Err(anyhow!("`{name}` is not a valid module name"));
        }
        let row = rows.iter().find(|row| row["name"] == name.as_str());
        let whole = client.send(&ServerRequest::show_module(&name)).await.ok();
        let whole = whole
            .filter(|answer| answer.status == 200)
            .and_then(|answer| answer.json());
        let whole = whole.map(|body| body.get("data").cloned().unwrap_or(body));
        let described: Vec<&Value> = whole.iter().chain(row).collect();
        listed.push(ListedModule::read(&name, &described, input));
    }
    Ok(TestModules::new(listed))
}

/// A list under `modules`, bare or as the data of an envelope.
fn rows(listing: &ServerResponse) -> Vec<Value> {
    let body = listing.json().unwrap_or_default();
    let list = body.pointer("/data/modules").or_else(|| body.pointer("/modules"));
    list.and_then(Value::as_array).cloned().unwrap_or_default()
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && !name.starts_with('.')
}

//! `cogn keys`: the API keys of a server. Keys are stored in the journal of the server, so that all its state
//! is in one file; a running server applies changes within a second.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use engine::port::Clock;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tenancy::limit::Rate;
use tenancy::{AllowList, Key, KeyError, KeyId, KeyStore, NewKey, Scope, Secret, Tenant};

use crate::clock::minute;
use crate::duration::Duration;
use crate::exit::Exit;
use crate::output::{Output, hinted};
use crate::server_setup;
use crate::table::{Align, Table};
use crate::wiring::{self, SystemClock};

#[derive(Debug, Args)]
pub(crate) struct Keys {
    /// The journal file of the server, which contains the keys.
    #[arg(long, global = true, value_name = "FILE")]
    journal: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a key and print it; it cannot be shown again.
    Create(Create),
    /// List the keys, without their secrets.
    List {
        /// Only the keys of this tenant.
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
    },
    /// Revoke a key permanently.
    Revoke {
        /// The id of the key, as printed by `list`.
        id: KeyId,
    },
}

#[derive(Debug, Args)]
struct Create {
    /// A name that describes the purpose of the key.
    name: String,
    /// The tenant whose runs the key can create and read.
    #[arg(long, value_name = "NAME", default_value = "local")]
    tenant: String,
    /// A scope of the key: execute, read, review, usage. May be given several times.
    #[arg(long, value_name = "SCOPE", default_values_t = [Scope::Execute, Scope::Read])]
    scope: Vec<Scope>,
    /// Time until the key expires: 12h, 30d.
    #[arg(long, value_name = "TIME")]
    expires: Option<Duration>,
    /// Restrict the key to this module; may be given several times.
    #[arg(long = "module", value_name = "NAME")]
    only_module: Vec<String>,
    /// Restrict the key to this model; may be given several times.
    #[arg(long = "model", value_name = "NAME")]
    only_model: Vec<String>,
    /// Rate limit of requests: 60/m, 5/s, 1000/h.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Limit of concurrent runs.
    #[arg(long, value_name = "COUNT")]
    concurrency: Option<u32>,
}

impl Keys {
    pub(crate) fn run(self, output: &Output) -> Result<Exit> {
        let settings = server_setup::command_store_settings(self.journal, output)?;
        wiring::current_thread_runtime()?.block_on(async {
            let stores = store::open(&settings).await?;
            let keys = stores.keys.as_ref();
            let done = match self.action {
                Action::Create(create) => create.run(keys, output).await,
                Action::List { tenant } => list(keys, tenant.as_deref(), output).await,
                Action::Revoke { id } => revoke(keys, &id, output).await,
            };
            stores.close().await;
            done
        })
    }
}

impl Create {
    async fn run(self, keys: &dyn KeyStore, output: &Output) -> Result<Exit> {
        let now_ms = SystemClock.now_ms();
        let allowed = |names: Vec<String>| AllowList::from((!names.is_empty()).then_some(names));
        let new = NewKey {
            name: self.name,
            tenant: Tenant::new(&self.tenant),
            scopes: self.scope.into_iter().collect(),
            modules: allowed(self.only_module),
            models: allowed(self.only_model),
            rate: self.rate,
            concurrency: self.concurrency,
            expires_at_ms: self.expires.map(|time| now_ms.saturating_add(time.as_millis())),
        };
        if let Some(problem) = new.problem(now_ms) {
            return Err(hinted(problem, "see `cogn keys create --help`"));
        }
        let (mut id, mut bits) = ([0; 6], [0; 32]);
        for bytes in [&mut id[..], &mut bits[..]] {
            getrandom::fill(bytes).context("cannot read random bytes from the operating system")?;
        }
        let secret = Secret::from_random(id, bits);
        let key = new.into_key(&secret, now_ms);
        keys.create(&key).await?;
        let text = secret.reveal();
        if output.json {
            let mut value = shown(&key, now_ms);
            value["key"] = Value::from(text.expose_secret());
            output.json(&value)?;
        } else {
            output.line(text.expose_secret())?;
            output.note("This is the only time the key is shown. Send it as `Authorization: Bearer KEY`.");
        }
        Ok(Exit::Success)
    }
}

async fn list(keys: &dyn KeyStore, tenant: Option<&str>, output: &Output) -> Result<Exit> {
    let now_ms = SystemClock.now_ms();
    let tenant = tenant.map(Tenant::new);
    let keys = keys.list(tenant.as_ref()).await?;
    if output.json {
        let rows: Vec<Value> = keys.iter().map(|key| shown(key, now_ms)).collect();
        output.json(&rows)?;
        return Ok(Exit::Success);
    }
    if keys.is_empty() {
        output.note("No keys found; create one with `cogn keys create NAME`.");
        return Ok(Exit::Success);
    }
    let headings = [
        "ID",
        "STATUS",
        "NAME",
        "TENANT",
        "SCOPES",
        "CREATED (UTC)",
        "ENDS (UTC)",
        "RESTRICTIONS",
    ];
    let mut table = Table::new(headings.map(|heading| (heading, Align::Left)));
    for key in &keys {
        table.push(row(key, now_ms));
    }
    table.print(output)?;
    Ok(Exit::Success)
}

async fn revoke(keys: &dyn KeyStore, id: &KeyId, output: &Output) -> Result<Exit> {
    let now_ms = SystemClock.now_ms();
    let key = match keys.revoke(id, now_ms).await {
        Ok(key) => key,
        Err(error @ KeyError::Unknown(_)) => {
            return Err(hinted(error.to_string(), "`cogn keys list` lists all keys"));
        }
        Err(error) => return Err(error.into()),
    };
    if output.json {
        output.json(&shown(&key, now_ms))?;
    } else {
        output.line(format!("{} {} is revoked", key.id, key.name))?;
    }
    Ok(Exit::Success)
}

fn shown(key: &Key, now_ms: u64) -> Value {
    let mut value = json!(key);
    value["standing"] = json!(key.status(now_ms));
    value
}

fn row(key: &Key, now_ms: u64) -> Vec<String> {
    let mut restrictions = Vec::new();
    if let Some(names) = key.modules.names() {
        restrictions.push(format!("modules {}", names.join(",")));
    }
    if let Some(names) = key.models.names() {
        restrictions.push(format!("models {}", names.join(",")));
    }
    restrictions.extend(key.rate.map(|rate| format!("rate {rate}")));
    restrictions.extend(key.concurrency.map(|count| format!("concurrency {count}")));
    // The time of the revocation, if there is one, is when it ended.
    let ends = key.revoked_at_ms.or(key.expires_at_ms);
    vec![
        key.id.to_string(),
        String::from(key.status(now_ms).as_str()),
        key.name.clone(),
        String::from(key.tenant.as_str()),
        key.scopes.to_string(),
        minute(key.created_at_ms),
        ends.map_or_else(|| String::from("never"), minute),
        match restrictions.is_empty() {
            true => String::from("none"),
            false => restrictions.join(", "),
        },
    ]
}

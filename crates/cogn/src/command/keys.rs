//! `cogn keys`: who may call a server. Keys stand in the server's own journal, so that one file holds
//! everything; a running server takes changes up within a second.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use engine::port::Clock;
use owo_colors::OwoColorize;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tenancy::key::KeyStatus;
use tenancy::limit::Rate;
use tenancy::{AllowList, Key, KeyError, KeyId, NewKey, Scope, Secret, Tenant};

use crate::server_setup;
use crate::clock::date;
use crate::duration::Duration;
use crate::exit::Exit;
use crate::output::{Output, hinted};
use crate::wiring::{self, SystemClock};

#[derive(Debug, Args)]
pub(crate) struct Keys {
    /// The server's journal, which holds the keys.
    #[arg(long, global = true, value_name = "FILE")]
    journal: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a key and show it, this once.
    Create(Create),
    /// List the keys, without their secrets.
    List {
        /// Only this tenant's.
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
    },
    /// End a key for good.
    Revoke {
        /// The key's id, as `list` shows it.
        id: KeyId,
    },
}

#[derive(Debug, Args)]
struct Create {
    /// What the key is for; for people.
    name: String,
    /// Whose runs it makes and sees.
    #[arg(long, value_name = "NAME", default_value = "local")]
    tenant: String,
    /// What it may do: execute, read, review, usage. May be given several times.
    #[arg(long, value_name = "SCOPE", default_values_t = [Scope::Execute, Scope::Read])]
    scope: Vec<Scope>,
    /// When it stops working, counted from now: 12h, 30d.
    #[arg(long, value_name = "TIME")]
    expires: Option<Duration>,
    /// Only this module may be run; may be given several times.
    #[arg(long = "module", value_name = "NAME")]
    only_module: Vec<String>,
    /// Only this model may answer; may be given several times.
    #[arg(long = "model", value_name = "NAME")]
    only_model: Vec<String>,
    /// Most requests in a time: 60/m, 5/s, 1000/h.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Most runs at a time.
    #[arg(long, value_name = "COUNT")]
    concurrency: Option<u32>,
}

impl Keys {
    pub(crate) fn run(self, output: &Output) -> Result<Exit> {
        let path = server_setup::journal_path(self.journal)?;
        wiring::current_thread_runtime()?.block_on(async {
            let journal = server_setup::open_journal(&path, None).await?;
            let done = match self.action {
                Action::Create(create) => create.run(&journal.keys(), output).await,
                Action::List { tenant } => list(&journal.keys(), tenant.as_deref(), output).await,
                Action::Revoke { id } => revoke(&journal.keys(), &id, output).await,
            };
            journal.close().await;
            done
        })
    }
}

impl Create {
    async fn run(self, keys: &impl tenancy::KeyStore, output: &Output) -> Result<Exit> {
        let now_ms = SystemClock::default().now_ms();
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
            return Err(hinted(
                problem,
                "`cogn keys create --help` tells what a key can be",
            ));
        }
        let (mut id, mut bits) = ([0; 6], [0; 32]);
        for bytes in [&mut id[..], &mut bits[..]] {
            getrandom::fill(bytes).context("the operating system gives no randomness")?;
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

async fn list(keys: &impl tenancy::KeyStore, tenant: Option<&str>, output: &Output) -> Result<Exit> {
    let now_ms = SystemClock::default().now_ms();
    let tenant = tenant.map(Tenant::new);
    let keys = keys.list(tenant.as_ref()).await?;
    if output.json {
        let rows: Vec<Value> = keys.iter().map(|key| shown(key, now_ms)).collect();
        output.json(&rows)?;
        return Ok(Exit::Success);
    }
    if keys.is_empty() {
        output.note("There are no keys; `cogn keys create NAME` makes one.");
    }
    for key in &keys {
        output.line(row(key, now_ms))?;
    }
    Ok(Exit::Success)
}

async fn revoke(keys: &impl tenancy::KeyStore, id: &KeyId, output: &Output) -> Result<Exit> {
    let now_ms = SystemClock::default().now_ms();
    let key = match keys.revoke(id, now_ms).await {
        Ok(key) => key,
        Err(error @ KeyError::Unknown(_)) => {
            return Err(hinted(
                error.to_string(),
                "`cogn keys list` shows those there are",
            ));
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

fn row(key: &Key, now_ms: u64) -> String {
    let mut notes = Vec::new();
    if let Some(names) = key.modules.names() {
        notes.push(format!("modules {}", names.join(",")));
    }
    if let Some(names) = key.models.names() {
        notes.push(format!("models {}", names.join(",")));
    }
    notes.extend(key.rate.map(|rate| format!("rate {rate}")));
    notes.extend(key.concurrency.map(|count| format!("concurrency {count}")));
    notes.extend(key.expires_at_ms.map(|at_ms| format!("until {}", date(at_ms))));
    let standing = key.status(now_ms);
    let word = match standing {
        KeyStatus::Active => standing.as_str().green().to_string(),
        KeyStatus::Expired | KeyStatus::Revoked => standing.as_str().red().to_string(),
    };
    format!(
        "{}  {word}  {}  {}  {}  {}",
        key.id,
        key.name.bold(),
        key.tenant,
        key.scopes,
        notes.join("  ").dimmed()
    )
}

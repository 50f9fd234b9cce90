//! Setup of a server: authentication, journal, retention and capacity limits, from the configuration to the
//! gateway. Wiring only: the gateway and `tenancy` verify keys and tokens.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use async_trait::async_trait;
use engine::port::Clock;
use engine::retention::Janitor;
use gateway::{Auth, Gateway, TokenVerifier};
use providers::KeySetUrl;
use store::{Durability, StoreError, StoreLock, StoreSettings, StoreUrl, Stores};
use tenancy::{JwksSource, TokenRules};

use crate::backends;
use crate::config::{Jwt, Settings, Sources};
use crate::data_folder::DataFolder;
use crate::output::{Output, hinted};

const KEY_SET_BYTES_MAX: u64 = 1024 * 1024;
/// Relative to the data folder.
const DEFAULT_STORE: &str = "sqlite:journal.db";

/// Fails if the address is not a loopback address and callers need not authenticate.
pub(crate) fn require_auth_on_public_address(listen: SocketAddr, required: bool) -> Result<()> {
    if listen.ip().is_loopback() || required {
        return Ok(());
    }
    Err(hinted(
        format!("{listen} is reachable from other machines, and authentication is not required"),
        "create a key with `cogn keys create` and serve with --require-auth, or listen on 127.0.0.1",
    ))
}

/// Authentication of callers: stored keys, and tokens if they are configured.
pub(crate) fn auth(
    stores: &Stores,
    clock: &Arc<dyn Clock>,
    settings: &Settings,
    required: bool,
) -> Result<Auth> {
    let mut auth = Auth::open(clock.clone()).with_keys(stores.keys.clone());
    if let Some(jwt) = &settings.auth.jwt {
        auth = auth.with_tokens(tokens(jwt, settings)?);
    }
    if required {
        auth = auth.require();
    }
    Ok(auth)
}

/// Adds authentication and the capacity limits to the gateway.
pub(crate) fn configure_gateway(
    gateway: Gateway,
    stores: &Stores,
    clock: &Arc<dyn Clock>,
    settings: &Settings,
    required: bool,
) -> Result<Gateway> {
    Ok(gateway
        .with_auth(auth(stores, clock, settings, required)?)
        .with_capacity(settings.limits.capacity()))
}

/// The task that prunes old runs.
pub(crate) fn retention_task(stores: &Stores, clock: &Arc<dyn Clock>, settings: &Settings) -> Janitor {
    Janitor::new(stores.archive.clone(), clock.clone(), settings.journal.keep())
}

fn tokens(jwt: &Jwt, settings: &Settings) -> Result<TokenVerifier> {
    let source: Arc<dyn JwksSource> = if jwt.jwks.contains("://") {
        let client = backends::http_client(settings)?;
        Arc::new(KeySetUrl::new(client, &jwt.jwks).map_err(|reason| anyhow!("auth.jwt.jwks: {reason}"))?)
    } else {
        Arc::new(KeySetFile(PathBuf::from(&jwt.jwks)))
    };
    let algorithms = jwt.algorithms.iter().map(|name| name.parse());
    let algorithms: Result<Vec<_>, String> = algorithms.collect();
    let rules = TokenRules {
        issuer: jwt.issuer.clone(),
        audience: jwt.audience.clone(),
        tenant_claim: jwt.tenant_claim.clone(),
        scope_claim: jwt.scope_claim.clone(),
        leeway_ms: jwt.leeway_ms,
        rate: jwt.rate,
        concurrency: jwt.concurrency,
    };
    let algorithms = algorithms.map_err(|reason| anyhow!("auth.jwt.algorithms: {reason}"))?;
    Ok(TokenVerifier::new(source, rules, algorithms))
}

/// A set of signing keys in a file. The file is read again from time to time, so it can be replaced.
#[derive(Debug)]
struct KeySetFile(PathBuf);

#[async_trait]
impl JwksSource for KeySetFile {
    fn location(&self) -> String {
        self.0.display().to_string()
    }

    async fn fetch(&self) -> Result<String, String> {
        let shown = self.0.display();
        let size = tokio::fs::metadata(&self.0).await.map(|facts| facts.len());
        match size {
            Ok(size) if size > KEY_SET_BYTES_MAX => Err(format!("{shown} is too large to be a key set")),
            Ok(_) => tokio::fs::read_to_string(&self.0)
                .await
                .map_err(|error| format!("cannot read {shown}: {error}")),
            Err(error) => Err(format!("cannot read {shown}: {error}")),
        }
    }
}

/// The stores of a server: the file that a flag names, else the configured ones, else a file in the data
/// folder.
pub(crate) fn store_settings(named: Option<PathBuf>, settings: &Settings) -> Result<StoreSettings> {
    let url = match named {
        Some(path) => StoreUrl::Sqlite(path),
        None => configured_store(settings)?,
    };
    Ok(StoreSettings {
        url,
        bytes_max: settings.journal.bytes_max,
        durability: settings.journal.durability,
    })
}

/// The same for a command that is not a server: without the size limit, and a configuration that is not needed
/// is not read. A journal that the command does not name is reported, because it depends on the working folder.
pub(crate) fn command_store_settings(named: Option<PathBuf>, output: &Output) -> Result<StoreSettings> {
    let url = match named {
        Some(path) => StoreUrl::Sqlite(path),
        None => {
            let url = configured_store_url()?;
            let StoreUrl::Sqlite(path) = &url;
            let owner = DataFolder::owner_of(path);
            let owner = owner.map(|project| format!(" (of the project {})", project.display()));
            output.note(format!(
                "journal: {}{}",
                path.display(),
                owner.unwrap_or_default()
            ));
            url
        }
    };
    Ok(StoreSettings {
        url,
        bytes_max: None,
        durability: Durability::default(),
    })
}

/// The store of this folder's configuration.
pub(crate) fn configured_store_url() -> Result<StoreUrl> {
    configured_store(&Settings::of(&Sources::from_environment(None)?.merge()?)?)
}

fn configured_store(settings: &Settings) -> Result<StoreUrl> {
    let url = settings.store.metadata.as_deref().unwrap_or(DEFAULT_STORE);
    let url = url
        .parse()
        .map_err(|reason: String| anyhow!("store.metadata: {reason}"))?;
    let StoreUrl::Sqlite(path) = url;
    if path.is_absolute() {
        return Ok(StoreUrl::Sqlite(path));
    }
    Ok(StoreUrl::Sqlite(DataFolder::from_environment()?.path.join(path)))
}

/// Locks the stores for this server.
pub(crate) fn lock_stores(stores: &Stores) -> Result<StoreLock> {
    stores.lock().map_err(|error| match error {
        StoreError::Locked { .. } => hinted(
            error.to_string(),
            "stop it first, or name another file with --journal",
        ),
        error => error.into(),
    })
}

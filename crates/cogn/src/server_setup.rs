//! Setup of a server: authentication, journal, retention and capacity limits, from the configuration to the
//! gateway. Wiring only: the gateway and `tenancy` verify keys and tokens.

use std::env;
use std::fs::{File, OpenOptions, TryLockError};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use async_trait::async_trait;
use engine::port::Clock;
use engine::retention::Janitor;
use gateway::{Auth, Gateway, TokenVerifier};
use providers::KeySetUrl;
use store::sqlite::{Options, SqliteJournal};
use tenancy::{JwksSource, TokenRules};

use crate::backends;
use crate::config::{Jwt, Settings};
use crate::output::hinted;

const KEY_SET_BYTES_MAX: u64 = 1024 * 1024;

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

/// Authentication of callers: keys of the journal, and tokens if they are configured.
pub(crate) fn auth(
    journal: &Arc<SqliteJournal>,
    clock: &Arc<dyn Clock>,
    settings: &Settings,
    required: bool,
) -> Result<Auth> {
    let mut auth = Auth::open(clock.clone()).with_keys(Arc::new(journal.keys()));
    if let Some(jwt) = &settings.auth.jwt {
        auth = auth.with_tokens(tokens(jwt, settings)?);
    }
    if required {
        auth = auth.require();
    }
    Ok(auth)
}

/// Adds authentication, the run archive and the capacity limits to the gateway.
pub(crate) fn configure_gateway(
    gateway: Gateway,
    journal: &Arc<SqliteJournal>,
    clock: &Arc<dyn Clock>,
    settings: &Settings,
    required: bool,
) -> Result<Gateway> {
    Ok(gateway
        .with_auth(auth(journal, clock, settings, required)?)
        .with_archive(journal.clone())
        .with_capacity(settings.limits.capacity()))
}

/// The task that prunes old runs.
pub(crate) fn retention_task(
    journal: &Arc<SqliteJournal>,
    clock: &Arc<dyn Clock>,
    settings: &Settings,
) -> Janitor {
    Janitor::new(journal.clone(), clock.clone(), settings.journal.keep())
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

/// Path of the journal: the file with the runs, keys and usage of a server.
pub(crate) fn journal_path(named: Option<PathBuf>) -> Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path);
    }
    let home = env::home_dir().ok_or_else(|| {
        hinted(
            "no home folder for the journal",
            "set its path with --journal FILE",
        )
    })?;
    Ok(home.join(".local/state/cogn/journal.db"))
}

/// Opens the journal, and creates it and its folder if they do not exist. Only the owner may read it: it
/// contains requests and the hashes of keys.
pub(crate) async fn open_journal(path: &Path, bytes_max: Option<u64>) -> Result<Arc<SqliteJournal>> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_private_dir(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let shown = path.display();
    create_private_file(path).with_context(|| format!("cannot open the journal {shown}"))?;
    let journal = SqliteJournal::open_with(path, Options { bytes_max }).await;
    let journal = journal.with_context(|| format!("cannot open the journal {shown}"))?;
    Ok(Arc::new(journal))
}

/// Locks the journal for one server: a second server would recover the runs that the first is executing.
/// The lock is released when the process ends, also when it is killed.
pub(crate) fn lock_journal(path: &Path) -> Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push("-server");
    let held = private().create(true).append(true).open(&name);
    let held = held.with_context(|| format!("cannot open {}", Path::new(&name).display()))?;
    match held.try_lock() {
        Err(TryLockError::WouldBlock) => Err(hinted(
            format!("another server uses the journal {}", path.display()),
            "stop it first, or name another file with --journal",
        )),
        // A file system without locks does not prevent serving.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(held),
    }
}

/// Creates a folder that only its owner can access; an existing folder keeps its permissions.
fn create_private_dir(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Creates a file that only its owner can access; SQLite gives its companion files the same permissions.
fn create_private_file(path: &Path) -> std::io::Result<()> {
    private().append(true).create(true).open(path).map(drop)
}

fn private() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "permissions are set on Unix only"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

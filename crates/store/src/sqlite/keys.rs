//! API keys in SQLite, in the file with the runs: access to one implies access to the other. A key and its
//! revocation are synced to disk before they are acknowledged.

use async_trait::async_trait;
use engine::port::JournalError;
use rusqlite::{Connection, Row, params};
use tenancy::{AllowList, Key, KeyError, KeyId, KeyStore, Scopes, Tenant};

use super::database::Readers;
use super::row::{execute, get, select, select_one, text, to_i64, to_u64};
use super::writer::Writer;

#[derive(Clone, Debug)]
pub struct SqliteKeys {
    pub(super) readers: Readers,
    pub(super) writer: Writer,
}

#[async_trait]
impl KeyStore for SqliteKeys {
    async fn create(&self, key: &Key) -> Result<(), KeyError> {
        let (id, key) = (key.id.clone(), key.clone());
        let create = move |connection: &Connection| {
            let list = |list: &AllowList| list.names().map(serde_json::to_string).transpose();
            let values = params![
                key.id.as_str(),
                key.tenant.as_str(),
                key.name,
                key.hash,
                key.scopes.to_string(),
                list(&key.modules).map_err(JournalError::from_backend)?,
                list(&key.models).map_err(JournalError::from_backend)?,
                key.rate.map(|rate| rate.to_string()),
                key.concurrency,
                to_i64(key.created_at_ms)?,
                key.expires_at_ms.map(to_i64).transpose()?,
                key.revoked_at_ms.map(to_i64).transpose()?,
            ];
            execute(connection, include_str!("query/create_key.sql"), values)
        };
        match self.writer.run_synced(create).await.map_err(KeyError::storage)? {
            0 => Err(KeyError::Exists(id)),
            _ => Ok(()),
        }
    }

    async fn find(&self, id: &KeyId) -> Result<Option<Key>, KeyError> {
        let id = id.clone();
        let query = move |connection: &Connection| {
            select_one(connection, include_str!("query/find_key.sql"), [id.as_str()], key)
        };
        self.readers.read(query).await.map_err(KeyError::storage)
    }

    async fn list(&self, tenant: Option<&Tenant>) -> Result<Vec<Key>, KeyError> {
        let tenant = tenant.cloned();
        let query = move |connection: &Connection| {
            let values = [tenant.as_ref().map(Tenant::as_str)];
            select(connection, include_str!("query/list_keys.sql"), values, key)
        };
        self.readers.read(query).await.map_err(KeyError::storage)
    }

    async fn revoke(&self, id: &KeyId, at_ms: u64) -> Result<Key, KeyError> {
        let revoked = id.clone();
        let revoke = move |connection: &Connection| {
            let values = params![revoked.as_str(), to_i64(at_ms)?];
            execute(connection, include_str!("query/revoke_key.sql"), values)
        };
        self.writer.run_synced(revoke).await.map_err(KeyError::storage)?;
        self.find(id).await?.ok_or_else(|| KeyError::Unknown(id.clone()))
    }
}

fn key(row: &Row<'_>) -> Result<Key, JournalError> {
    let rate: Option<String> = get(row, "rate")?;
    let parse_rate = |rate: String| {
        rate.parse()
            .map_err(|error: String| JournalError::from_backend(error))
    };
    Ok(Key {
        id: text(row, "id")?
            .parse()
            .map_err(|error: String| JournalError::from_backend(error))?,
        tenant: Tenant::new(text(row, "tenant")?),
        name: get(row, "name")?,
        hash: get(row, "hash")?,
        scopes: Scopes::known_in(text(row, "scopes")?),
        modules: allowed(row, "modules")?,
        models: allowed(row, "models")?,
        rate: rate.map(parse_rate).transpose()?,
        concurrency: get(row, "concurrency")?,
        created_at_ms: to_u64(get(row, "created_at_ms")?)?,
        expires_at_ms: get::<Option<i64>>(row, "expires_at_ms")?
            .map(to_u64)
            .transpose()?,
        revoked_at_ms: get::<Option<i64>>(row, "revoked_at_ms")?
            .map(to_u64)
            .transpose()?,
    })
}

/// A list that cannot be parsed must not be treated as "no restriction".
fn allowed(row: &Row<'_>, column: &str) -> Result<AllowList, JournalError> {
    let text: Option<String> = get(row, column)?;
    let names = text
        .as_deref()
        .map(serde_json::from_str::<Vec<String>>)
        .transpose();
    Ok(AllowList::from(names.map_err(JournalError::from_backend)?))
}

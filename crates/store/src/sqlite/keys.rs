//! API keys in SQLite, in the file with the runs: access to one implies access to the other.

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, Sqlite};
use tenancy::{AllowList, Key, KeyError, KeyId, KeyStore, Scopes, Tenant};

use super::database::Database;

#[derive(Clone, Debug)]
pub struct SqliteKeys {
    pub(super) database: Database,
}

#[async_trait]
impl KeyStore for SqliteKeys {
    async fn create(&self, key: &Key) -> Result<(), KeyError> {
        let list = |list: &AllowList| list.names().map(serde_json::to_string).transpose();
        let made = sqlx::query(include_str!("query/create_key.sql"))
            .bind(key.id.as_str())
            .bind(key.tenant.as_str())
            .bind(&key.name)
            .bind(&key.hash)
            .bind(key.scopes.to_string())
            .bind(list(&key.modules).map_err(KeyError::storage)?)
            .bind(list(&key.models).map_err(KeyError::storage)?)
            .bind(key.rate.map(|rate| rate.to_string()))
            .bind(key.concurrency.map(i64::from))
            .bind(integer(key.created_at_ms)?)
            .bind(key.expires_at_ms.map(integer).transpose()?)
            .bind(key.revoked_at_ms.map(integer).transpose()?)
            .execute(&self.database.writer)
            .await
            .map_err(KeyError::storage)?;
        match made.rows_affected() {
            0 => Err(KeyError::Exists(key.id.clone())),
            _ => Ok(()),
        }
    }

    async fn find(&self, id: &KeyId) -> Result<Option<Key>, KeyError> {
        let row = sqlx::query(include_str!("query/find_key.sql"))
            .bind(id.as_str())
            .fetch_optional(&self.database.readers)
            .await
            .map_err(KeyError::storage)?;
        row.as_ref().map(key).transpose()
    }

    async fn list(&self, tenant: Option<&Tenant>) -> Result<Vec<Key>, KeyError> {
        let rows = sqlx::query(include_str!("query/list_keys.sql"))
            .bind(tenant.map(Tenant::as_str))
            .fetch_all(&self.database.readers)
            .await
            .map_err(KeyError::storage)?;
        rows.iter().map(key).collect()
    }

    async fn revoke(&self, id: &KeyId, at_ms: u64) -> Result<Key, KeyError> {
        sqlx::query(include_str!("query/revoke_key.sql"))
            .bind(id.as_str())
            .bind(integer(at_ms)?)
            .execute(&self.database.writer)
            .await
            .map_err(KeyError::storage)?;
        self.find(id).await?.ok_or_else(|| KeyError::Unknown(id.clone()))
    }
}

fn key(row: &SqliteRow) -> Result<Key, KeyError> {
    let scopes: &str = get(row, "scopes")?;
    let rate: Option<&str> = get(row, "rate")?;
    let concurrency: Option<i64> = get(row, "concurrency")?;
    let id: &str = get(row, "id")?;
    Ok(Key {
        id: id.parse().map_err(|error: String| KeyError::storage(error))?,
        tenant: Tenant::new(get(row, "tenant")?),
        name: get(row, "name")?,
        hash: get(row, "hash")?,
        scopes: Scopes::known_in(scopes),
        modules: allowed(row, "modules")?,
        models: allowed(row, "models")?,
        rate: rate
            .map(|rate| rate.parse().map_err(|error: String| KeyError::storage(error)))
            .transpose()?,
        concurrency: concurrency
            .map(|count| u32::try_from(count).map_err(KeyError::storage))
            .transpose()?,
        created_at_ms: natural(get(row, "created_at_ms")?)?,
        expires_at_ms: get::<Option<i64>>(row, "expires_at_ms")?
            .map(natural)
            .transpose()?,
        revoked_at_ms: get::<Option<i64>>(row, "revoked_at_ms")?
            .map(natural)
            .transpose()?,
    })
}

/// A list that cannot be parsed must not be treated as "no restriction".
fn allowed(row: &SqliteRow, column: &str) -> Result<AllowList, KeyError> {
    let text: Option<&str> = get(row, column)?;
    let names = text.map(serde_json::from_str::<Vec<String>>).transpose();
    Ok(AllowList::from(names.map_err(KeyError::storage)?))
}

fn get<'r, T>(row: &'r SqliteRow, column: &str) -> Result<T, KeyError>
where
    T: sqlx::Decode<'r, Sqlite> + sqlx::Type<Sqlite>,
{
    row.try_get(column).map_err(KeyError::storage)
}

fn integer(value: u64) -> Result<i64, KeyError> {
    i64::try_from(value).map_err(KeyError::storage)
}

fn natural(value: i64) -> Result<u64, KeyError> {
    u64::try_from(value).map_err(KeyError::storage)
}

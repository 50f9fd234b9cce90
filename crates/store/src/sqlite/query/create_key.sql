INSERT INTO api_key (
    id, tenant, name, hash, scopes, modules, models, rate, concurrency, created_at_ms, expires_at_ms,
    revoked_at_ms
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT DO NOTHING

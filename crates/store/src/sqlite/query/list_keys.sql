SELECT
    id, tenant, name, hash, scopes, modules, models, rate, concurrency, created_at_ms, expires_at_ms,
    revoked_at_ms
FROM api_key
WHERE ?1 IS NULL OR tenant = ?1
ORDER BY created_at_ms, id

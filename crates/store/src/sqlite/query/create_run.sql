INSERT INTO run (tenant, id, module, command, state, created_at_ms, client, once_key, once_fingerprint, kind)
VALUES (?1, ?2, ?3, ?4, 'running', ?5, ?6, ?7, ?8, ?9)
ON CONFLICT DO NOTHING

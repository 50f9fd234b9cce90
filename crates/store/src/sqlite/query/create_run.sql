INSERT INTO run (tenant, id, module, command, state, created_at_ms)
VALUES (?1, ?2, ?3, ?4, 'running', ?5)
ON CONFLICT DO NOTHING

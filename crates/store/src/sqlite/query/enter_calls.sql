INSERT INTO run (tenant, id, module, command, state, created_at_ms, client)
SELECT
    value ->> 'tenant', value ->> 'id', value ->> 'module', value ->> 'command', 'running',
    value ->> 'created_at_ms', value ->> 'client'
FROM json_each(?1)
WHERE true
ON CONFLICT DO NOTHING

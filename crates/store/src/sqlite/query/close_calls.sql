-- Every row is there, so this only ever changes one: by its key, which a plain update might not be.
INSERT INTO run (tenant, id, module, command, state, code, created_at_ms, finished_at_ms)
SELECT
    value ->> 'tenant', value ->> 'id', '', '', value ->> 'state', value ->> 'code', value ->> 'at_ms',
    value ->> 'at_ms'
FROM json_each(?1)
WHERE true
ON CONFLICT (tenant, id) DO UPDATE
SET state = excluded.state, code = excluded.code, finished_at_ms = excluded.finished_at_ms
WHERE run.state = 'running'

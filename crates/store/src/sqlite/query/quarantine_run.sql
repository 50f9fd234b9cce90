INSERT OR REPLACE INTO damaged_run (tenant, id, reason, content)
SELECT
    tenant, id, ?3,
    json_object(
        'kind', kind, 'module', module, 'command', command, 'state', state, 'code', code, 'client', client,
        'created_at_ms', created_at_ms, 'finished_at_ms', finished_at_ms, 'last_offset', last_offset,
        'recoveries', recoveries
    )
FROM run
WHERE tenant = ?1 AND id = ?2

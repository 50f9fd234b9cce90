SELECT tenant, id, module, command, state, code, created_at_ms, finished_at_ms, last_offset FROM run
WHERE state = 'running'
ORDER BY created_at_ms, id

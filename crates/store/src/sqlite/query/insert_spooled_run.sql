INSERT INTO run (
    tenant, id, module, command, state, code, created_at_ms, finished_at_ms, last_offset, client, review_reason,
    kind
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT DO NOTHING

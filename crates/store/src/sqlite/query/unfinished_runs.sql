-- One tenant after the other: the index on the state starts with the tenant.
WITH RECURSIVE
holder(tenant) AS (
    SELECT MIN(tenant) FROM run
    UNION ALL
    SELECT (SELECT MIN(run.tenant) FROM run WHERE run.tenant > holder.tenant) FROM holder
    WHERE holder.tenant IS NOT NULL
)
SELECT
    run.tenant, id, kind, module, command, state, code, created_at_ms, finished_at_ms, last_offset, client,
    review_reason, review_decision, review_by, review_comment, review_data, review_at_ms
FROM holder CROSS JOIN run INDEXED BY run_state ON run.tenant = holder.tenant AND run.state = 'running'
ORDER BY created_at_ms, id

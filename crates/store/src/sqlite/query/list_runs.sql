SELECT
    tenant, id, kind, module, '' AS command, state, code, created_at_ms, finished_at_ms, last_offset, client,
    review_reason, review_decision, review_by, review_comment, review_data, review_at_ms
FROM run
WHERE tenant = ?1 AND id < ?2
ORDER BY id DESC LIMIT ?3

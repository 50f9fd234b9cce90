DELETE FROM run WHERE (tenant, id) IN (
    SELECT tenant, id FROM run
    WHERE finished_at_ms < ?1 AND state <> 'running'
    AND (review_reason IS NULL OR review_decision IS NOT NULL)
    AND (once_key IS NULL OR created_at_ms < ?2)
    ORDER BY finished_at_ms, tenant, id LIMIT ?3
)

SELECT
    CASE WHEN ?4 THEN client END AS client,
    CASE WHEN ?5 THEN NULLIF(module, '') END AS module,
    CASE WHEN ?6 THEN model END AS model,
    CASE WHEN ?7 THEN at_ms / 86400000 END AS day,
    COUNT(DISTINCT tenant || ' ' || run) AS runs,
    SUM(attempt > 0) AS attempts,
    SUM(input_tokens) AS input_tokens,
    SUM(output_tokens) AS output_tokens,
    SUM(estimated_tokens) AS estimated_tokens,
    SUM(input_tokens IS NULL OR output_tokens IS NULL) AS unknown
FROM usage
WHERE (?1 IS NULL OR tenant = ?1) AND at_ms >= ?2 AND at_ms < ?3
GROUP BY 1, 2, 3, 4
ORDER BY day, client, module, model
LIMIT ?8

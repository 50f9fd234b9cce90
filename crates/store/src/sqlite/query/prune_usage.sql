DELETE FROM usage WHERE (tenant, run, attempt) IN (
    SELECT tenant, run, attempt FROM usage WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2
)

UPDATE run SET state = ?3, code = ?4, finished_at_ms = ?5, review_reason = ?6
WHERE tenant = ?1 AND id = ?2

SELECT id, once_fingerprint FROM run
WHERE tenant = ?1 AND client = ?2 AND once_key = ?3 AND created_at_ms >= ?4

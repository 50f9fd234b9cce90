UPDATE api_key SET revoked_at_ms = ?2 WHERE id = ?1 AND revoked_at_ms IS NULL

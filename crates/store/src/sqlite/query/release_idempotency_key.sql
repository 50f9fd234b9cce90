-- An idempotency key is valid for a limited time.
UPDATE run SET once_key = NULL, once_fingerprint = NULL
WHERE tenant = ?1 AND client = ?2 AND once_key = ?3 AND created_at_ms < ?4

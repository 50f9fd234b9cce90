UPDATE run SET review_decision = ?3, review_by = ?4, review_comment = ?5, review_data = ?6, review_at_ms = ?7
WHERE tenant = ?1 AND id = ?2 AND review_reason IS NOT NULL AND review_decision IS NULL

INSERT INTO event (tenant, run, "offset", kind, seq, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)

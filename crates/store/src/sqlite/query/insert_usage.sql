INSERT INTO usage (
    tenant, run, attempt, client, module, backend, model, outcome, input_tokens, output_tokens,
    estimated_tokens, at_ms
)
SELECT ?1, ?2, ?3, client, module, ?4, ?5, ?6, ?7, ?8, ?9, ?10 FROM run WHERE tenant = ?1 AND id = ?2

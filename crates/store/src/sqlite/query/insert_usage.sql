-- Existing rows are kept: a lifecycle record may be replayed after its run was pruned.
INSERT INTO usage (
    tenant, run, attempt, client, module, backend, model, outcome, input_tokens, output_tokens,
    estimated_tokens, at_ms
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT DO NOTHING

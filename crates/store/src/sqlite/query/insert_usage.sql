-- What is accounted for stays as it is: a booking may come again when its run has been thrown away.
INSERT INTO usage (
    tenant, run, attempt, client, module, backend, model, outcome, input_tokens, output_tokens,
    estimated_tokens, at_ms
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT DO NOTHING

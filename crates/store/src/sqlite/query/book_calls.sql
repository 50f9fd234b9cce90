-- Only of runs that are open: what somebody else has closed is accounted for.
INSERT INTO usage (
    tenant, run, attempt, client, module, backend, model, outcome, input_tokens, output_tokens,
    estimated_tokens, at_ms
)
SELECT
    run.tenant, run.id, spent.value ->> 'attempt', run.client, run.module, spent.value ->> 'backend',
    spent.value ->> 'model', spent.value ->> 'outcome', spent.value ->> 'input_tokens',
    spent.value ->> 'output_tokens', spent.value ->> 'estimated_tokens', closed.value ->> 'at_ms'
FROM json_each(?1) AS closed
CROSS JOIN run ON run.tenant = closed.value ->> 'tenant' AND run.id = closed.value ->> 'id'
CROSS JOIN json_each(closed.value, '$.spent') AS spent
WHERE run.state = 'running'
ON CONFLICT DO NOTHING

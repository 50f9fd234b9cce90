// Operations of a host, with the official Node.js client, unmodified.
//
// client.mjs pipe COMMAND...    over standard input and output
// client.mjs http URL [KEY]     over streamable HTTP

import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [kind, first, ...rest] = process.argv.slice(2);

function transport() {
  if (kind === 'pipe') {
    return new StdioClientTransport({ command: first, args: rest, env: process.env });
  }
  const headers = rest.length > 0 ? { authorization: `Bearer ${rest[0]}` } : {};
  return new StreamableHTTPClientTransport(new URL(first), { requestInit: { headers } });
}

async function connected(capabilities, work) {
  const client = new Client({ name: 'test', version: '1' }, { capabilities });
  await client.connect(transport());
  try {
    await work(client);
  } finally {
    await client.close();
  }
}

const text = { text: 'two words' };

await connected({}, async client => {
  const { tools } = await client.listTools();
  const names = tools.map(tool => tool.name);
  assert(names.includes('counter') && names.includes('cognitive_run'), names.join());

  // The client validates structured results against the tool's schema, errors included.
  const good = await client.callTool({ name: 'counter', arguments: text });
  assert.equal(good.isError, false);
  assert.equal(good.structuredContent.data.n, 3);
  const bad = await client.callTool({ name: 'counter', arguments: {} });
  assert.equal(bad.isError, true);
  assert.equal(bad.structuredContent.error.code, 'E1002');
  await assert.rejects(client.callTool({ name: 'no-such-tool', arguments: {} }), error => error.code === -32602);

  const steps = [];
  await client.callTool({ name: 'counter', arguments: { text: 'slowly' } }, undefined, {
    onprogress: step => steps.push(step.progress),
  });
  assert(steps.length > 1 && steps.every((step, i) => i === 0 || step > steps[i - 1]), steps.join());

  const both = await Promise.all(['one', 'two'].map(text => client.callTool({ name: 'counter', arguments: { text } })));
  assert(both.every(one => !one.isError));

  const stop = new AbortController();
  const slow = client.callTool({ name: 'counter', arguments: { text: 'very slowly' } }, undefined, {
    signal: stop.signal,
    onprogress: () => stop.abort('enough'),
  });
  await assert.rejects(slow);
  const after = await client.callTool({ name: 'counter', arguments: text });
  assert.equal(after.isError, false, 'the place of the call that was withdrawn is free');

  const { resources } = await client.listResources();
  assert(resources.some(resource => resource.uri === 'cognitive://module/counter'));
  const { prompts } = await client.listPrompts();
  assert(prompts.some(prompt => prompt.name === 'counter'));

  const acts = await client.callTool({ name: 'actor', arguments: text });
  assert.equal(acts.structuredContent.error.code, 'E4007');
});

await connected({ elicitation: {} }, async client => {
  let asked = 0;
  client.setRequestHandler(ElicitRequestSchema, request => {
    asked += 1;
    assert(request.params.message.includes('side_effects'));
    return { action: 'accept', content: { confirm: true } };
  });
  const acts = await client.callTool({ name: 'actor', arguments: text });
  assert.equal(acts.isError, false);
  assert.equal(asked, 1);
});

console.log('done');

import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { tool as aiTool, jsonSchema, zodSchema } from 'ai';
import { expect, inject, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import { prepareCall, resolveAgent } from '../../src/agent/index.ts';
import { createArchiveWorker } from '../../src/archive/door.ts';
import { archiveWorkflowId } from '../../src/contract/archive.ts';
import { sha256Hex } from '../../src/contract/json.ts';
import {
  type AgentOptions,
  agentTool,
  createWorker,
  type DefinedAgent,
  type DefinedTool,
  defineAgent,
  defineTool,
  isPerdureError,
  remindMe,
  sleepUntil,
  type ToolOptions,
} from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';

const model = 'openai:gpt';
const inputSchema = z.object({ id: z.string() });
const execute = (): string => 'done';
const good = { name: 'support', model, instructions: 'Help.' };

/** What a definition is refused with; fails the test when it is accepted. */
function refusal(define: () => unknown): string {
  try {
    define();
  } catch (error) {
    if (isPerdureError(error, 'INVALID_DEFINITION')) return error.message;
    throw error;
  }
  return expect.fail('it was accepted');
}

const registry = {
  languageModel: (id: string) => ({ specificationVersion: 'v3', provider: 'openai', modelId: id }) as never,
};

const TOOLS: [unknown, string][] = [
  [{ inputSchema }, 'execute is missing: write execute: async (input, { idempotencyKey }) => …'],
  [{ inputSchema, execute: 'run' }, 'execute is missing: write execute: '],
  [{ execute }, 'inputSchema is missing: write inputSchema: z.object({ … })'],
  [{ inputSchema, execute, effect: 'delete' }, `effect is "delete": write 'read', 'idempotent' or 'mutate'`],
  [{ inputSchema, execute, verify: true }, 'verify is not a function: write verify: async ('],
  [
    { inputSchema, execute, effect: 'read', verify: () => ({ outcome: 'absent' }) },
    "verify is only for effect 'mutate', but this tool is 'read': remove verify, or write effect: 'mutate'",
  ],
  [
    { inputSchema, execute, idempotency: { scope: 'tenant' } },
    `idempotency.scope is "tenant": write 'call', 'message', 'session' or 'global'`,
  ],
  [
    { inputSchema, execute, effect: 'read', idempotency: { scope: 'global' } },
    "idempotency.scope 'global' is only for effect 'mutate'",
  ],
  [{ inputSchema, execute, maxAttempts: 0 }, 'maxAttempts is 0: write a whole number from 1'],
  [{ inputSchema, execute, maxAttempts: 1.5 }, 'maxAttempts is 1.5: write a whole number from 1'],
  [
    { inputSchema, execute, timeout: 'soon' },
    `timeout is "soon": write milliseconds, or a duration such as '30s'`,
  ],
  [{ inputSchema, execute, timeout: 0 }, 'timeout is 0: write milliseconds'],
  [{ inputSchema, execute, settle: -1 }, 'settle is -1: write milliseconds'],
  [
    { inputSchema, execute, needsApproval: true, approval: { expires: '2 moons' } },
    'approval.expires is "2 moons": write milliseconds',
  ],
  [
    { inputSchema, execute, needsApproval: true, approval: { onExpiry: 'ask' } },
    `approval.onExpiry is "ask": write 'approve' or 'reject'`,
  ],
  [
    { inputSchema, execute, needsApproval: 'yes' },
    'needsApproval is "yes": write true, false, or a function of the input',
  ],
  [
    { inputSchema, execute, needsApproval: true, approval: { expiry: '2d' } },
    'approval.expiry is unknown. Known names: expires, onExpiry',
  ],
  [
    { inputSchema, execute, approval: { expires: '2d' } },
    'approval needs needsApproval. Write needsApproval: false if only questions and compensations wait for people',
  ],
  [
    { inputSchema, execute, idempotency: 'call' },
    'idempotency is "call": write { scope, args }, or a function of the input',
  ],
  [
    { inputSchema, execute, idempotency: { arguments: ['id'] } },
    'idempotency.arguments is unknown. Known names: scope, ttl, args',
  ],
  [
    { inputSchema, execute, idempotency: { args: 'id' } },
    'idempotency.args is "id": write names of arguments',
  ],
  [{ inputSchema, execute, idempotency: { args: [] } }, 'idempotency.args is []: write names of arguments'],
  [{ inputSchema, execute, idempotency: null }, 'idempotency is null: write { scope, args }'],
  [
    { inputSchema, execute, idempotency: { ttl: '1h' } },
    "idempotency.ttl is only for scope 'global': remove it, or write scope: 'global'",
  ],
  [
    { inputSchema, execute, idempotency: { scope: 'session', ttl: 5 } },
    "idempotency.ttl is only for scope 'global'",
  ],
  [{ inputSchema, execute, description: 5 }, 'description is 5: write a text'],
  [
    { inputSchema, execute, idempotency: { scope: 'global', ttl: 'long' } },
    'idempotency.ttl is "long": write milliseconds',
  ],
  [
    { inputSchema, execute, timeout: '30 days' },
    'timeout is "30 days": the longest is 2147483647 milliseconds, almost 25 days. Write a shorter one',
  ],
  [{ inputSchema, execute, timeout: 2 ** 31 }, 'timeout is 2147483648: the longest is 2147483647'],
  [{ inputSchema, execute, timeout: Number.POSITIVE_INFINITY }, 'timeout is Infinity: the longest is'],
  [{ inputSchema, execute, settle: '4000 days' }, 'settle is "4000 days": the longest is 10 years'],
  [
    { inputSchema, execute, needsApproval: true, approval: { expires: Number.MAX_SAFE_INTEGER } },
    'approval.expires is 9007199254740991: the longest is 10 years. Write a shorter one, or leave it out: the call then ',
  ],
  [
    { inputSchema, execute, idempotency: { scope: 'global', ttl: '4000 days' } },
    'idempotency.ttl is "4000 days": the longest is 10 years',
  ],
];

test.each<Partial<ToolOptions<{ id: string }, string>>>([
  { timeout: 2 ** 31 - 1, settle: '3650 days' },
  { needsApproval: true, approval: { expires: '3650 days' } },
  { idempotency: { scope: 'global', ttl: '3650 days' } },
])('a tool may have the longest durations: %o', (options) => {
  expect(defineTool({ inputSchema, execute, ...options })).toMatchObject(options);
});

test.each(TOOLS.map(([options, message]) => ({ options, message })))(
  'a tool is refused: $message',
  ({ options, message }) => {
    expect(refusal(() => defineTool(options as never))).toContain(message);
    const agent = { ...good, tools: { pay: options as never } };
    expect(refusal(() => defineAgent(agent))).toContain(`agent support: tools.pay: ${message}`);
  },
);

test.each<[() => unknown, string]>([
  [() => sleepUntil({ max: '4000 days' }), 'sleepUntil: max is "4000 days": the longest is 10 years'],
  [
    () => sleepUntil({ max: Number.POSITIVE_INFINITY }),
    'sleepUntil: max is Infinity: the longest is 10 years',
  ],
  [() => remindMe({ max: 'later' as never }), 'remindMe: max is "later": write milliseconds, or a duration'],
  [
    () => agentTool('clerk', { description: 'Files.', recheck: '4000 days' }),
    'agentTool: recheck is "4000 days": the longest is 2147483647 milliseconds',
  ],
  [
    () => agentTool('clerk', { description: 'Files.', idempotency: { scope: 'global' } }),
    "agentTool: idempotency.scope 'global' is not for agents, each of which works for one session: write 'session'",
  ],
  [
    () =>
      defineAgent({
        ...good,
        tools: { clerk: agentTool('clerk', { description: 'Files.' }) },
        effects: { clerk: { effect: 'mutate', idempotency: { scope: 'global' } } },
      }),
    "agent support: tools.clerk: idempotency.scope 'global' is not for agents",
  ],
])('a ready-made tool is refused: %#', (define, message) => {
  expect(refusal(define)).toContain(message);
});

test('a slip in a name is refused, for a guard that nobody reads guards nothing', () => {
  const slip = { inputSchema, execute, needsAproval: true };
  expect(refusal(() => defineTool(slip))).toMatch(/^needsAproval is unknown. Known names: .*needsApproval,/);
  const slips = { ...good, budgets: { usd: 1 } };
  expect(refusal(() => defineAgent(slips))).toMatch(
    /^agent support: budgets is unknown\. Known names: .*budget,/,
  );
});

test("what is undefined in an agent's effects leaves the tool's approval as it is", () => {
  const pay = aiTool({ inputSchema, execute, needsApproval: true });
  const effects = { pay: { effect: 'mutate' as const, needsApproval: undefined as never } };
  const { tools } = defineAgent({ ...good, tools: { pay }, effects });
  expect(tools['pay']).toMatchObject({ effect: 'mutate', needsApproval: true });
});

test("a tool of the AI SDK may be spread, with all that is its own, and an agent's own definition changed", () => {
  const plain = aiTool({
    title: 'Look',
    inputSchema,
    outputSchema: z.string(),
    execute,
    strict: true,
    inputExamples: [{ input: { id: '1' } }],
    providerOptions: { openai: { deferLoading: true } },
    metadata: { from: 'us' },
    onInputStart: () => {},
    onInputDelta: () => {},
    onInputAvailable: () => {},
    toModelOutput: ({ output }) => ({ type: 'text', value: output }),
  });
  const look = defineTool({ ...plain, needsApproval: false, execute, effect: 'read' });
  const quicker = defineTool({ ...look, timeout: '1s' });
  expect(quicker).toMatchObject({ effect: 'read', timeout: '1s' });
});

test.each<[object, string]>([
  [{ execute: undefined }, 'execute is missing'],
  [{ effect: 'bogus' }, 'effect is "bogus"'],
  [{ needsAproval: true }, 'needsAproval is unknown'],
])('a copy of a defined tool is checked again, for it has the mark of one: %o', async (change, message) => {
  const pay = { ...defineTool({ inputSchema, execute, effect: 'read' }), ...change };
  const refused = `agent support: tools.pay: ${message}`;
  expect(refusal(() => defineAgent({ ...good, tools: { pay } }))).toContain(refused);
  const agent = { ...defineAgent(good), tools: { pay: pay as DefinedTool } };
  expect(await rejection(resolveAgent(agent, registry))).toMatchObject({
    code: 'INVALID_DEFINITION',
    message: expect.stringContaining(refused),
  });
});

test.each<[unknown, string]>([
  [{ ...defineAgent(good), loopLimit: 0 }, 'agent support: loopLimit is 0'],
  [{ ...defineAgent(good), models: [] }, 'agent support: model is missing'],
  [{ ...defineAgent(good), budgets: { turns: 1 } }, 'agent support: budgets is unknown'],
  [{ ...defineAgent(good), model }, 'agent support: model is set on a defined agent'],
  [good, 'agent support: it is not a defined agent: write defineAgent({ … })'],
  [undefined, 'it is not a defined agent'],
])('a worker takes no agent that is not defined, or not any more: %#', async (agent, message) => {
  expect(await rejection(resolveAgent(agent as DefinedAgent, registry))).toMatchObject({
    code: 'INVALID_DEFINITION',
    message: expect.stringContaining(message),
  });
});

test('options of a provider are what the provider takes', async () => {
  const providerOptions = { openai: { reasoningEffort: 'low', store: false } };
  const agent = defineAgent({ ...good, providerOptions });
  expect((await resolveAgent(agent, registry)).definition.providerOptions).toEqual(providerOptions);
});

const price = { inputPerMillion: 1, outputPerMillion: 2 };

const AGENTS: [Partial<Record<keyof AgentOptions, unknown>>, string][] = [
  [{ name: '' }, `name is "": write 1 to 64 letters, digits, '-', '_' or '.'`],
  [{ name: 'two words' }, 'name is "two words": write 1 to 64 letters'],
  [{ name: 'x'.repeat(65) }, 'write 1 to 64 letters'],
  [{ name: undefined }, 'name is undefined: write 1 to 64 letters'],
  [{ instructions: '  ' }, 'agent support: instructions is empty: write what the agent must do'],
  [{ instructions: undefined }, 'agent support: instructions is empty'],
  [
    { model: undefined },
    `agent support: model is missing: write model: openai('…'), 'provider:model', or a list of them`,
  ],
  [{ model: [] }, 'agent support: model is missing'],
  [{ model: [model, null] }, 'agent support: model is missing'],
  [{ model: { model: undefined } }, 'agent support: model is missing'],
  [{ model: 5 }, 'agent support: model is missing'],
  [
    { budget: { usd: 1 } },
    'agent support: budget.usd needs a price for each model: write model: { model, price: {',
  ],
  [{ budget: { usd: 1 }, model: [{ model, price }, model] }, 'budget.usd needs a price for each model'],
  [{ budget: { turns: -1 } }, 'agent support: budget.turns is -1: write a number, 0 or more'],
  [{ budget: { tokens: Number.NaN } }, 'agent support: budget.tokens is NaN: write a number, 0 or more'],
  [
    { budget: { tokens: Number.POSITIVE_INFINITY } },
    'agent support: budget.tokens is Infinity: write a number, 0 or more, or leave it out',
  ],
  [{ budget: { turns: '10' } }, 'agent support: budget.turns is 10: write a number, 0 or more'],
  [
    { budget: { dollars: 1 } },
    'agent support: budget.dollars is not a cap: write turns, toolCalls, tokens, usd or activeMs',
  ],
  [
    { model: { model, price: { inputPerMillion: -1, outputPerMillion: 1 } } },
    'agent support: price.inputPerMillion is -1: write US dollars for a million tokens',
  ],
  [
    { model: { model, price: { inputPerMillion: 1 } } },
    'agent support: price.outputPerMillion is undefined: write US dollars',
  ],
  [{ temperature: 'hot' }, 'agent support: temperature is "hot": write a number, 0 or more'],
  [{ temperature: Number.NaN }, 'agent support: temperature is NaN: write a number, 0 or more'],
  [{ temperature: -1 }, 'agent support: temperature is -1: write a number, 0 or more'],
  [{ providerOptions: 5 }, 'agent support: providerOptions is 5: write an object'],
  [{ providerOptions: ['low'] }, 'agent support: providerOptions is ["low"]: write an object'],
  [{ providerOptions: { openai: 'low' } }, 'agent support: providerOptions.openai is "low": write an object'],
  [{ plan: 'yes' }, 'agent support: plan is "yes": write true or false'],
  [{ budget: null }, 'agent support: budget is null: write an object'],
  [{ budget: 5 }, 'agent support: budget is 5: write an object'],
  [{ tools: [] }, 'agent support: tools is []: write an object'],
  [{ maxOutputTokens: 0 }, 'agent support: maxOutputTokens is 0: write a whole number from 1'],
  [
    { model: { model, maxOutputTokens: 1.5 } },
    'agent support: maxOutputTokens is 1.5: write a whole number from 1',
  ],
  [{ loopLimit: 0 }, 'agent support: loopLimit is 0: write a whole number from 1'],
  [{ toolOrder: 'random' }, `agent support: toolOrder is "random": write 'ordered' or 'parallel'`],
  [{ heartbeat: 'often' }, 'agent support: heartbeat is "often": write milliseconds'],
  [{ modelTimeout: 0 }, 'agent support: modelTimeout is 0: write milliseconds'],
  [{ heartbeat: '25 days' }, 'agent support: heartbeat is "25 days": the longest is 2147483647 milliseconds'],
  [{ modelTimeout: '30 days' }, 'agent support: modelTimeout is "30 days": the longest is 2147483647'],
  [
    { modelCallTimeout: '4000 days' },
    'agent support: modelCallTimeout is "4000 days": the longest is 10 years',
  ],
  [
    { tools: { 'a b': defineTool({ inputSchema, execute }) } },
    `agent support: tools.a b: write 1 to 64 letters, digits, '-' or '_' as its name`,
  ],
  [{ tools: { pay: null } }, 'agent support: tools.pay is not a tool: write defineTool({ … })'],
  [{ tools: { pay: execute } }, 'agent support: tools.pay is not a tool'],
  [{ tools: { ['__proto__']: defineTool({ inputSchema, execute }) } }, 'agent support: tools.__proto__: '],
  [
    { tools: { call_1_0: defineTool({ inputSchema, execute }) } },
    'agent support: tools.call_1_0 looks like the id of',
  ],
  [
    { plan: true, tools: { update_plan: defineTool({ inputSchema, execute }) } },
    "agent support: tools.update_plan is the built-in plan tool's name: rename it, or drop plan",
  ],
  [
    { tools: { ask: aiTool({ inputSchema }) } },
    'agent support: tools.ask: execute is missing: write execute: async',
  ],
];

test.each(AGENTS.map(([options, message]) => ({ options, message })))(
  'an agent is refused: $message',
  ({ options, message }) => {
    expect(refusal(() => defineAgent({ ...good, ...options } as AgentOptions))).toContain(message);
  },
);

test('a plain AI SDK tool is accepted, and treated as a mutation', async () => {
  const pay = aiTool({ description: 'Pays', inputSchema, execute });
  const { manifest } = await resolveAgent(defineAgent({ ...good, tools: { pay } }), registry);
  expect(manifest.tools['pay']).toMatchObject({
    effect: 'mutate',
    scope: 'call',
    verify: false,
    maxAttempts: 3,
  });
});

test('whether a plain tool needs approval is asked as the AI SDK asks it', async () => {
  const asked: unknown[] = [];
  const pay = aiTool({
    inputSchema,
    execute,
    needsApproval: (input, options) => {
      asked.push([input, options]);
      return options.messages.length === 0;
    },
  });
  const agent = await resolveAgent(defineAgent({ ...good, tools: { pay } }), registry);
  const call = { name: 'pay', args: { id: '1' }, callId: 'call_1_0' };
  expect(await prepareCall(agent, call)).toMatchObject({ name: 'pay', needsApproval: true });
  expect(asked).toEqual([[{ id: '1' }, { toolCallId: 'call_1_0', messages: [], context: {} }]]);
});

test('the identity of a call is recorded where it is not all arguments, and as a digest where it is long', async () => {
  const identityOf = async (idempotency: unknown, id: string): Promise<unknown> => {
    const options = { inputSchema, execute, ...(idempotency === undefined ? {} : { idempotency }) };
    const pay = defineTool(options as never);
    const agent = await resolveAgent(defineAgent({ ...good, tools: { pay } }), registry);
    return (await prepareCall(agent, { name: 'pay', args: { id }, callId: 'call_1_0' })).identity;
  };
  const upper = ({ id }: { id: string }): string => id.toUpperCase();
  expect(await identityOf(undefined, 'a')).toBe(undefined);
  expect(await identityOf({ scope: 'session', args: ['id'] }, 'a')).toBe(undefined);
  expect(await identityOf(upper, 'a')).toBe('A');
  const long = 'a'.repeat(1_000);
  expect(await identityOf(upper, long)).toBe(sha256Hex(JSON.stringify(long.toUpperCase())));
});

const NO_OBJECT = 'inputSchema is not an object schema: providers accept only z.object({ … })';

test.each<[string, unknown, string]>([
  ['a date', z.object({ at: z.date() }), 'inputSchema cannot be converted to JSON Schema: '],
  ['a BigInt', z.object({ n: z.bigint() }), 'inputSchema cannot be converted to JSON Schema: '],
  ['a map', z.object({ m: z.map(z.string(), z.string()) }), 'cannot be converted to JSON Schema: '],
  ['a string', z.string(), NO_OBJECT],
  ['a list', z.array(z.string()), NO_OBJECT],
  ['a union', z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]), NO_OBJECT],
  ['nothing', jsonSchema({}), NO_OBJECT],
  ['nothing, but later', jsonSchema(() => ({})), NO_OBJECT],
  ['not a schema', { id: 'string' }, 'inputSchema cannot be converted to JSON Schema: '],
  ['a number', 42, 'inputSchema cannot be converted to JSON Schema: '],
])('a schema of %s is refused where it is written', (_, schema, message) => {
  const tool = { inputSchema: schema as never, execute };
  expect(refusal(() => defineTool(tool))).toMatch(/^inputSchema /);
  expect(refusal(() => defineTool(tool))).toContain(message);
  const agent = { ...good, tools: { pay: tool as never } };
  expect(refusal(() => defineAgent(agent))).toContain('agent support: tools.pay: inputSchema ');
});

test.each<[string, () => unknown, string]>([
  ['comes later', () => jsonSchema(Promise.resolve({ type: 'string' as const })), NO_OBJECT],
  ['fails later', () => jsonSchema(Promise.reject(new Error('not there'))), 'JSON Schema: not there.'],
  ['is asked for later', () => () => zodSchema(z.string()), NO_OBJECT],
])('a schema that %s is refused when the worker starts', async (_, schema, message) => {
  const pay = defineTool({ inputSchema: schema() as never, execute });
  const error = await rejection(resolveAgent(defineAgent({ ...good, tools: { pay } }), registry));
  expect(error).toMatchObject({ code: 'INVALID_DEFINITION' });
  expect((error as Error).message).toMatch(/^agent support: tools\.pay: inputSchema /);
  expect((error as Error).message).toContain(message);
});

test('arguments that name an identity must be arguments of the tool', async () => {
  const idempotency = { args: ['chargeid'] } as never;
  const charge = z.object({ chargeId: z.string() });
  const words = 'idempotency.args names chargeid, which is not an argument. The arguments: chargeId';
  expect(refusal(() => defineTool({ inputSchema: charge, idempotency, execute }))).toBe(words);
  // Neither does a JSON schema that allows further arguments, as they do when they do not say.
  const open = jsonSchema({ type: 'object', properties: { chargeId: { type: 'string' } } });
  expect(refusal(() => defineTool({ inputSchema: open, idempotency, execute }))).toBe(words);
  const late = defineTool({ inputSchema: () => zodSchema(charge), idempotency, execute });
  expect(await rejection(resolveAgent(defineAgent({ ...good, tools: { late } }), registry))).toMatchObject({
    code: 'INVALID_DEFINITION',
    message: `agent support: tools.late: ${words}`,
  });
});

test('a model that the worker does not have is refused, with how to give it one', async () => {
  for (const models of [undefined, { languageModel: () => undefined as never }]) {
    expect(await rejection(resolveAgent(defineAgent(good), models))).toMatchObject({
      code: 'INVALID_DEFINITION',
      message: expect.stringContaining(
        "agent support: model 'openai:gpt' is not in the worker's models. Pass createWorker({ models:",
      ),
    });
  }
});

test('a definition that no session could hold is refused with its size', async () => {
  const agent = defineAgent({ ...good, instructions: 'x'.repeat(1_100_000) });
  expect(await rejection(resolveAgent(agent, registry))).toMatchObject({
    code: 'TOO_LARGE',
    message: expect.stringMatching(
      /^the definition of agent support is 11\d+ bytes of JSON, the limit is 1000000/,
    ),
  });
});

test('the digest of a definition changes with what the model or the session sees, and with nothing else', async () => {
  const pay = defineTool({ inputSchema, execute });
  const digest = async (options: Partial<AgentOptions>): Promise<string> =>
    (await resolveAgent(defineAgent({ ...good, tools: { pay }, ...options }), registry)).manifest.digest;
  const base = await digest({});
  expect(await digest({})).toBe(base);
  expect(await digest({ tools: { pay: defineTool({ inputSchema, execute: () => 'other code' }) } })).toBe(
    base,
  );
  const others = await Promise.all([
    digest({ instructions: 'Help more.' }),
    digest({ model: 'openai:other' }),
    digest({ tools: {} }),
    digest({ tools: { pay: defineTool({ inputSchema, execute, effect: 'read' }) } }),
    digest({ tools: { pay: defineTool({ inputSchema: z.object({ id: z.number() }), execute }) } }),
    digest({ budget: { turns: 3 } }),
    digest({ plan: true }),
  ]);
  expect(new Set([base, ...others]).size).toBe(others.length + 1);
});

test('two agents of one name are refused when the worker starts', async () => {
  const agents = [defineAgent(good), defineAgent({ ...good, instructions: 'Other.' })];
  const { address } = inject('temporal');
  const error = await rejection(createWorker({ agents, models: registry, address, journal: false }));
  expect(error).toMatchObject({
    code: 'INVALID_DEFINITION',
    message: 'agents: two agents are named support: rename one',
  });
});

test('a worker closes the connection that it opened, and not one that it was given', async () => {
  const { address, namespace } = inject('temporal');
  const given = await NativeConnection.connect({ address });
  onTestFinished(() => given.close());
  const name = randomUUID();
  const path = join(mkdtempSync(join(tmpdir(), 'archive-')), 'archive.db');
  onTestFinished(() => rmSync(dirname(path), { recursive: true }));
  const ask = (connection: NativeConnection | undefined): Promise<unknown> | undefined =>
    connection?.workflowService.getSystemInfo({});
  const where = { agents: [], taskQueue: name, namespace, journal: false } as const;
  for (const worker of [
    await createWorker({ ...where, address }),
    await createArchiveWorker({ path, name, namespace, address }),
  ]) {
    await worker.runUntil(Promise.resolve());
    await expect(ask(worker.connection)).rejects.toThrow(/closed/);
  }
  const worker = await createWorker({ ...where, connection: given });
  await worker.runUntil(Promise.resolve());
  await expect(ask(given)).resolves.toBeDefined();
  const client = new Client({ connection: given, namespace });
  await client.workflow.getHandle(archiveWorkflowId(name)).terminate();
});

test('a worker whose server is not there says so', async () => {
  const worker = createWorker({ agents: [defineAgent(good)], models: registry, address: '127.0.0.1:1' });
  const error = await rejection(worker);
  expect(error).toMatchObject({
    code: 'SERVER_UNAVAILABLE',
    message: 'The Temporal server at 127.0.0.1:1 cannot be reached. Start one: perdure dev',
  });
});

test.each<[string, NonNullable<AgentOptions['providerOptions']>, number]>([
  ['Anthropic', { anthropic: { thinking: { type: 'enabled', budgetTokens: 2_000 } } }, 2_100],
  ['Anthropic, which has a default', { anthropic: { thinking: { type: 'enabled' } } }, 1_124],
  ['Bedrock', { bedrock: { reasoningConfig: { type: 'enabled', budgetTokens: 2_000 } } }, 2_100],
  ['nobody', { anthropic: { thinking: { type: 'disabled', budgetTokens: 2_000 } } }, 100],
  ['nobody who says how much', { anthropic: { thinking: { type: 'adaptive' } } }, 100],
  ['nobody, of what is no count', { anthropic: { thinking: { type: 'enabled', budgetTokens: -5 } } }, 100],
])(
  'what clients add to a reply for thoughts is reserved, and not asked for: %s',
  async (_, providerOptions, reserved) => {
    const agent = defineAgent({ ...good, maxOutputTokens: 100, providerOptions });
    const { manifest, maxOutputTokens } = await resolveAgent(agent, registry);
    expect(manifest.models).toMatchObject([{ maxOutputTokens: reserved }]);
    expect(maxOutputTokens).toEqual([100]);
  },
);

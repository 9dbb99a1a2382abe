/** Answers that are values: checked against the agent's `output` schema, asked for again, or waited for. */
import { expect, expectTypeOf, test } from 'vitest';
import * as z from 'zod';
import { type DefinedAgent, defineAgent, defineTool, TemporalSaver } from '../../src/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

const output = z.object({ total: z.number(), currency: z.string().default('EUR') });

async function open(
  script: Script,
): Promise<{ stage: Stage; agent: DefinedAgent<object, z.infer<typeof output>> }> {
  const stage = await openStage(script);
  const add = defineTool({
    description: 'Adds',
    inputSchema: z.object({ amounts: z.array(z.number()) }),
    effect: 'read',
    execute: ({ amounts }) => amounts.reduce((sum, amount) => sum + amount, 0),
  });
  const agent = defineAgent({
    name: 'sums',
    model: stage.provider('m'),
    instructions: 'Add up.',
    tools: { add },
    output,
  });
  await stage.startWorker([agent]);
  return { stage, agent };
}

test('an answer is checked, and its value is the result, with the defaults of the schema', async () => {
  const { stage, agent } = await open(({ toolResults }) =>
    toolResults.length === 0
      ? { toolCalls: [{ name: 'add', args: { amounts: [1, 2] } }] }
      : { text: '```json\n{"total": 3}\n```' },
  );
  const session = await stage.sessions.start(agent, { id: stage.id(), message: '1 and 2', mode: 'task' });
  await untilPhase(session, 'closed');
  const result = await session.result();
  expectTypeOf(result.output).toEqualTypeOf<{ total: number; currency: string } | undefined>();
  expect(result.output).toEqual({ total: 3, currency: 'EUR' });
  expect((await session.state()).output).toEqual({ total: 3, currency: 'EUR' });
  const [first] = stage.model.requests;
  const body = first?.request.body as unknown as {
    messages: { content: string }[];
    response_format?: unknown;
  };
  expect(body.messages[0]?.content).toMatch(/^Add up\.\n\nWhen you answer without calling a tool.*"total"/s);
  expect(body.response_format).toBeDefined();
  await expectSound(stage, session);
});

test('an answer that does not fit is asked for again, and no effect of the message is another one for it', async () => {
  const answers = ['it is three', '{"total":"3"}', '{"total":3}'];
  const { stage, agent } = await open(() => ({ text: answers.shift() ?? '' }));
  const session = await stage.sessions.start(agent, { id: stage.id(), message: '1 and 2' });
  const view = await untilPhase(session, 'idle');
  expect(view).toMatchObject({ output: { total: 3, currency: 'EUR' }, turn: 3, wait: null });
  const { items: messages } = await session.transcript();
  expect(messages.map(({ role, repair }) => (repair === true ? 'repair' : role))).toEqual([
    'user',
    'assistant',
    'repair',
    'assistant',
    'repair',
    'assistant',
  ]);
  expect(JSON.stringify(messages[4])).toContain('total: Invalid input: expected number, received string');
  expect(view.notices.filter(({ kind }) => kind === 'output')).toHaveLength(2);
  const checkpoint = await new TemporalSaver(stage.client).get(session.id);
  expect(checkpoint?.state['message']).toBe(1);
  await expectSound(stage, session);
});

test('a schema that the model never meets: the session waits, and asks again when told to', async () => {
  let good = false;
  const { stage, agent } = await open(() => ({ text: good ? '{"total":3}' : 'three' }));
  const session = await stage.sessions.start(agent, { id: stage.id(), message: '1 and 2', mode: 'task' });
  const { wait, turn } = await untilPhase(session, 'waiting');
  expect(turn).toBe(3);
  expect(wait).toMatchObject({
    reason: 'invalid_response',
    message: expect.stringContaining('3 answers in a row do not fit the output schema of sums'),
    next: { action: 'resume' },
  });
  good = true;
  await session.resume({ by: 'ada' });
  await until(session, ({ phase }) => phase === 'closed');
  expect(await session.result()).toMatchObject({ status: 'completed', turns: 4, output: { total: 3 } });
  await expectSound(stage, session);
});

test('a schema that is none, or not of an object, is refused where the agent is defined', () => {
  const define = (given: unknown): unknown =>
    defineAgent({ name: 'sums', model: 'test:m', instructions: 'Add up.', output: given as typeof output });
  expect(() => define('json')).toThrow('agent sums: output is "json": write a schema');
  expect(() => define(z.array(z.number()))).toThrow('agent sums: output is not an object schema');
});

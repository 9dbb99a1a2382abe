import proto from '@temporalio/proto';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, type JsonValue, LIMIT, type Session } from '../../src/index.ts';
import { scriptedTurns } from '../../src/testing/index.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { allPages, expectSound } from './support/sound.ts';

const { EventType, WorkflowTaskFailedCause } = proto.temporal.api.enums.v1;
const none = z.object({});

const textOf = (result: { content: JsonValue } | undefined): string =>
  typeof result?.content === 'string' ? result.content : '';

/** What a careless tool throws need not be an error. */
const careless = (thrown: unknown): unknown => thrown;

/** Runs one turn in which the model calls the tools at once, and the next in which it has seen the results. */
async function runTools(
  tools: Record<string, { effect: 'read' | 'mutate'; result: () => unknown }>,
  calls: string[] = Object.keys(tools),
): Promise<{ stage: Stage; session: Session; results: { content: JsonValue; isError: boolean }[] }> {
  const stage = await openStage(
    scriptedTurns([
      { toolCalls: calls.map((name, i) => ({ name, args: calls.length > 1 ? { i } : {} })) },
      ({ toolResults }) => ({ text: `saw ${toolResults.map(({ text }) => text.length).join(',')}` }),
    ]),
  );
  const agent = defineAgent({
    name: 'results',
    model: stage.provider('m'),
    instructions: 'Call the tools.',
    // Its history is looked at, which the results would end.
    runTurns: false,
    tools: Object.fromEntries(
      Object.entries(tools).map(([name, { effect, result }]) => [
        name,
        defineTool({ inputSchema: none, effect, execute: result }),
      ]),
    ),
  });
  await stage.startWorker([agent]);
  const session = await stage.sessions.start('results', { id: stage.id(), message: 'go' });
  await untilPhase(session, 'idle', 'waiting', 'unknown_effect');
  const items = await allPages((page) => session.calls(page));
  return { stage, session, results: items.map(({ result }) => result ?? { content: null, isError: true }) };
}

test.each([{ effect: 'read' }, { effect: 'mutate' }] as const)(
  'an oversize result that is retried for ever: 5 MB ($effect) are shortened with a notice, and no attempt follows',
  async ({ effect }) => {
    let ran = 0;
    const { stage, session, results } = await runTools({
      big: {
        effect,
        result: () => {
          ran++;
          return { rows: 'x'.repeat(5_000_000) };
        },
      },
    });
    expect(ran).toBe(1);
    const [result] = results;
    expect(result?.isError).toBe(false);
    const [, text = '', kept] =
      /^(\{"rows":"x+) \[shortened: this result had 5000011 bytes, (\d+) are kept\]$/.exec(textOf(result)) ??
      [];
    // As many as the notice says, and as many as there is room for.
    expect(JSON.stringify(text).length).toBe(Number(kept));
    const bytes = JSON.stringify(result?.content).length;
    expect(bytes).toBeLessThanOrEqual(LIMIT.toolResult);
    expect(bytes).toBeGreaterThan(LIMIT.toolResult - 10);
    expect((await session.state()).lastText).toBe(`saw ${textOf(result).length}`);
    await expectSound(stage, session);
  },
);

test('five results of 1 MB in one turn share what one message may have, and the next model call works', async () => {
  let n = 0;
  const { stage, session, results } = await runTools(
    { big: { effect: 'read', result: () => `${n++}${'é'.repeat(500_000)}` } },
    ['big', 'big', 'big', 'big', 'big'],
  );
  const share = LIMIT.turnResults / 5;
  for (const { content } of results) {
    const [, kept] =
      /\[shortened: this result had 1000003 bytes, (\d+) are kept\]$/.exec(
        JSON.stringify(content).slice(0, -1),
      ) ?? [];
    expect(Number(kept)).toBeGreaterThan(share - 100);
    expect(Buffer.byteLength(JSON.stringify(content))).toBeLessThanOrEqual(share);
  }
  expect((await session.state()).lastText).toMatch(/^saw \d{5,6}(,\d{5,6}){4}$/);
  const { historySize } = await stage.client.workflow.getHandle(session.id).describe();
  expect(historySize).toBeLessThan(LIMIT.turnResults + 20_000);
  await expectSound(stage, session);
});

test('results that JSON would lose or refuse are written as JSON or text, and never lost', async () => {
  const cycle: Record<string, unknown> = { name: 'loop' };
  cycle['self'] = cycle;
  const date = new Date('2026-01-02T03:04:05.678Z');
  const cases: Record<string, [result: () => unknown, content: JsonValue]> = {
    nothing: [() => undefined, null],
    isNull: [() => null, null],
    date: [() => ({ at: date }), { at: '2026-01-02T03:04:05.678Z' }],
    holes: [() => ({ a: 1, b: undefined, c: () => 1 }), { a: 1 }],
    nan: [() => [Number.NaN, Number.POSITIVE_INFINITY, -0], [null, null, 0]],
    map: [() => new Map([['k', 1]]), {}],
    asked: [async () => ({ async: true }), { async: true }],
    stream: [
      async function* () {
        yield 'first';
        yield 'last';
      },
      'last',
    ],
    bigint: [() => 12345678901234567890n, '12345678901234567890'],
    func: [() => () => 1, null],
  };
  const { stage, session } = await runTools(
    Object.fromEntries(
      Object.entries(cases).map(([name, [result]]) => [name, { effect: 'mutate' as const, result }]),
    ),
  );
  const { items } = await session.calls();
  for (const { name, status, result } of items) {
    expect([name, status.kind, result]).toEqual([
      name,
      'completed',
      { content: cases[name]?.[1], isError: false },
    ]);
  }
  await expectSound(stage, session);
});

test.each([
  [
    'a cycle',
    () => {
      const cycle: Record<string, unknown> = { name: 'loop' };
      cycle['self'] = cycle;
      return cycle;
    },
  ],
  ['a BigInt inside', () => ({ cents: 10n, id: 'ch_1' })],
  [
    'a getter that throws',
    () => ({
      id: 'ch_1',
      get secret() {
        throw new Error('do not look');
      },
    }),
  ],
  [
    'a toJSON that throws',
    () => ({
      id: 'ch_1',
      toJSON() {
        throw new Error('do not write');
      },
    }),
  ],
])(
  'a mutation that returns %s has happened: it is completed, and says what could not be kept',
  async (_, result) => {
    const { stage, session, results } = await runTools({ pay: { effect: 'mutate', result } });
    expect(results[0]).toMatchObject({ isError: false });
    expect(typeof results[0]?.content).toBe('string');
    expect(results[0]?.content).toMatch(/JSON cannot hold/);
    await expectSound(stage, session);
  },
);

test('a thrown error of 5 MB, and things thrown that are no errors, are told to the model in short', async () => {
  const { stage, session, results } = await runTools({
    huge: {
      effect: 'read',
      result: () => {
        throw new Error('x'.repeat(5_000_000));
      },
    },
    text: {
      effect: 'read',
      result: () => {
        throw careless('just a text');
      },
    },
    nothing: {
      effect: 'read',
      result: () => {
        throw careless(undefined);
      },
    },
    bare: {
      effect: 'read',
      result: () => {
        throw careless(Object.create(null));
      },
    },
  });
  expect(results.map(({ isError }) => isError)).toEqual([true, true, true, true]);
  expect(textOf(results[0]).length).toBeLessThanOrEqual(4_000);
  expect(results[1]?.content).toBe('text failed: just a text');
  expect(results[2]?.content).toBe('nothing failed: undefined');
  expect(results[3]?.content).toBe('bare failed: [Object: null prototype] {}');
  await expectSound(stage, session);
});

test('twenty-four results of 250 KB in one turn fit into what Temporal carries at once', async () => {
  const { stage, session, results } = await runTools(
    { rows: { effect: 'read', result: () => 'r'.repeat(250_000) } },
    Array.from({ length: 24 }, () => 'rows'),
  );
  expect(results.map(({ isError }) => isError)).not.toContain(true);
  expect(results).toHaveLength(24);
  const { history } = await expectSound(stage, session);
  const causes = history.events
    .filter(({ eventType }) => eventType === EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED)
    .map(({ workflowTaskFailedEventAttributes }) => workflowTaskFailedEventAttributes?.cause);
  // The server itself ends a task whose buffered events are many; a worker's failure would be another cause.
  expect(
    causes.filter(
      (cause) => cause !== WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
    ),
  ).toEqual([]);
});

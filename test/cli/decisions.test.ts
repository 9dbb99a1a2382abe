import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SessionView } from '../../src/index.ts';
import { decide } from '../support/decide.ts';
import { untilPhase } from '../support/stage.ts';
import { errorOf, noTerminal, type Ran, typeInto, wordsOf } from './support/perdure.ts';
import { type CliStage, openStage } from './support/stage.ts';

let stage: CliStage;
beforeAll(async () => {
  stage = await openStage();
  await stage.startWorker();
});
afterAll(() => stage.close());

/** Starts a session whose model asks for these refunds, and waits until it waits. */
async function waiting(phase: SessionView['phase'], ...charges: string[]): Promise<string> {
  const id = stage.id('decide');
  await stage.begin(id, 'support', `refund ${charges.join(' ')}`);
  await untilPhase(stage.session(id), phase);
  return id;
}

/** What the model was told of the session's calls, once it has gone on. */
async function told(id: string): Promise<unknown[]> {
  await untilPhase(stage.session(id), 'idle');
  return (await stage.session(id).calls()).items.map(({ result }) => result);
}

describe('approve', () => {
  test('lets the only call that waits run as it was shown, and says who did', async () => {
    const id = await waiting('approval', 'ch_1:9000');
    const shown = await stage.perdure('show', id);
    expect(shown.stdout).toContain(`next: perdure approve ${id} call_1_0 --digest `);
    const { code, stdout } = await stage.perdure('approve', id, 'call_1_0');
    expect(code).toBe(0);
    const digits = /--digest (\w{12})/.exec(shown.stdout)?.[1];
    expect(stdout.split('\n').slice(0, 2)).toEqual([
      'approved call_1_0  refund {"chargeId":"ch_1","cents":9000}',
      expect.stringMatching(`^  recorded: approve by ada for digest ${digits}; the call is \\w+$`),
    ]);
    expect(await told(id)).toEqual([{ content: { refunded: 9_000 }, isError: false }]);
    const [call] = (await stage.session(id).calls()).items;
    expect(call?.decision).toMatchObject({ decision: 'approve', by: 'ada' });
  });

  test('a second decision is refused, and the first one is named', async () => {
    const id = await waiting('approval', 'ch_2:9000');
    const first = await stage.json('approve', id, 'call_1_0', '--by', 'grace');
    expect(first).toMatchObject({ sessionId: id, callId: 'call_1_0', decision: 'approve', by: 'grace' });
    await untilPhase(stage.session(id), 'idle');
    const ran = await stage.perdure('reject', id, 'call_1_0', '--json');
    expect(ran).toMatchObject({ code: 4, stdout: '' });
    expect(errorOf(ran)).toMatchObject({ code: 'CALL_NOT_PENDING', next: `perdure show ${id}` });
    expect(errorOf(ran).message).toMatch(/already decided: approve by grace at/);
  });

  test('of two that wait, one has to be named', async () => {
    const id = await waiting('approval', 'ch_3:9000', 'ch_4:9000');
    const ran = await stage.perdure('approve', id, '--json');
    expect(ran.code).toBe(3);
    expect(errorOf(ran)).toMatchObject({
      code: 'UNKNOWN_CALL',
      details: { waiting: [{ callId: 'call_1_0', tool: 'refund' }, { callId: 'call_1_1' }] },
    });
    await stage.json('approve', id, 'call_1_1');
    // Now one waits, and need not be named.
    expect(await stage.json('reject', id, '--yes')).toMatchObject({ callId: 'call_1_0' });
    expect(await told(id)).toMatchObject([{ isError: true }, { content: { refunded: 9_000 } }]);
  });

  test('a call that is not there is told by its name, with those that wait', async () => {
    const id = await waiting('approval', 'ch_5:9000');
    const ran = await stage.perdure('approve', id, 'call_9_9', '--json');
    expect(ran.code).toBe(3);
    expect(errorOf(ran).code).toBe('UNKNOWN_CALL');
    expect(errorOf(ran).message).toMatch(/no call call_9_9.*call_1_0/);
    await stage.json('cancel', id);
    await stage.session(id).result();
    for (const call of [[], ['call_1_0']]) {
      const closed = await stage.perdure('approve', id, ...call, '--json');
      expect(closed.code).toBe(4);
      expect(errorOf(closed).code).toBe('SESSION_CLOSED');
    }
  });
});

describe('edit', () => {
  test('lets a call run with other arguments, from the command or from a file', async () => {
    const id = await waiting('approval', 'ch_6:9000', 'ch_7:9000');
    const edited = { chargeId: 'ch_6', cents: 100 };
    const said = await stage.json('edit', id, 'call_1_0', '--args', JSON.stringify(edited));
    expect(said).toMatchObject({ args: edited, formerArgs: { chargeId: 'ch_6', cents: 9_000 }, by: 'ada' });
    const folder = await mkdtemp(join(tmpdir(), 'perdure-cli-'));
    try {
      await writeFile(join(folder, 'args.json'), '{"chargeId": "ch_7", "cents": 200}\n');
      const { code, stdout } = await stage.perdure(
        'edit',
        id,
        'call_1_1',
        '--args',
        `@${join(folder, 'args.json')}`,
      );
      expect(code).toBe(0);
      expect(stdout).toMatch(
        /^edited call_1_1 .*9000\}\n {2}now \{"chargeId":"ch_7","cents":200\}\n {2}recorded: edit by \w+ for digest /,
      );
    } finally {
      await rm(folder, { recursive: true });
    }
    expect(await told(id)).toMatchObject([{ content: { refunded: 100 } }, { content: { refunded: 200 } }]);
  });

  test("arguments that the tool's schema refuses leave the call waiting", async () => {
    const id = await waiting('approval', 'ch_8:9000');
    const ran = await stage.perdure(
      'edit',
      id,
      'call_1_0',
      '--args',
      '{"chargeId": "ch_8", "cents": "a lot"}',
      '--json',
    );
    expect(ran).toMatchObject({ code: 4, stdout: '' });
    expect(errorOf(ran).code).toBe('INVALID_TOOL_INPUT');
    expect(errorOf(ran).message).toMatch(/cents/);
    expect((await stage.session(id).state()).phase).toBe('approval');
  });
});

test('reject tells the model why', async () => {
  const id = await waiting('approval', 'ch_9:9000');
  const { code, stdout } = await stage.perdure('reject', id, 'call_1_0', '--reason', 'not our charge');
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^rejected call_1_0 .*\n {2}because not our charge\n {2}recorded: reject by ada for digest \w{12}; /,
  );
  expect(await told(id)).toEqual([{ content: expect.stringContaining('not our charge'), isError: true }]);
});

test.each([
  ['{"refunded": 1}', { refunded: 1 }],
  ['it was paid back in the shop', 'it was paid back in the shop'],
])('respond answers in place of the call: %s', async (output, content) => {
  const id = await waiting('approval', 'ch_10:9000');
  expect(await stage.json('respond', id, 'call_1_0', '--output', output)).toMatchObject({ output: content });
  expect(await told(id)).toEqual([{ content, isError: false }]);
});

describe('resolve', () => {
  /** The commands that `show` prints for the only call in question, as their arguments. */
  const answers = async (id: string): Promise<Record<string, string[]>> => {
    const { stdout } = await stage.perdure('show', id);
    const all = [...stdout.matchAll(/(perdure resolve .*)/g)].map(([, line = '']) => wordsOf(line));
    return Object.fromEntries(all.map((words) => [words[3] ?? '', words]));
  };

  test('says that a lost call landed, with what it returned', async () => {
    const id = await waiting('unknown_effect', 'lost:100');
    const { landed = [] } = await answers(id);
    const resolved = await stage.json(...landed, '--output', '{"refunded": 100}');
    expect(resolved).toMatchObject({ callId: 'call_1_0', outcome: 'landed', by: 'ada', status: 'completed' });
    expect(await told(id)).toEqual([{ content: { refunded: 100 }, isError: false }]);
  });

  test('absent runs it again, failed tells the model', async () => {
    const id = await waiting('unknown_effect', 'lost:100');
    const { absent = [] } = await answers(id);
    await stage.json(...absent);
    await expect.poll(async () => (await stage.session(id).calls()).items[0]?.dispatches.length).toBe(2);
    await untilPhase(stage.session(id), 'unknown_effect');
    // The same again is of the dispatch before.
    expect(errorOf(await stage.perdure(...absent, '--json'))).toMatchObject({
      code: 'DISPATCH_MISMATCH',
      details: { dispatchNo: 2 },
    });
    const { failed = [] } = await answers(id);
    const { code, stdout } = await stage.perdure(...failed, '--reason', 'the bank said no');
    expect({ code, stdout: stdout.split('\n')[0] }).toEqual({
      code: 0,
      stdout: 'recorded: dispatch 2 of call_1_0 is failed; the call is failed',
    });
    expect(await told(id)).toEqual([{ content: expect.stringContaining('the bank said no'), isError: true }]);
  });

  test('refuses a call whose outcome is not in question', async () => {
    const id = await waiting('approval', 'ch_11:9000');
    const ran = await stage.perdure('resolve', id, 'call_1_0', 'landed', '--json');
    expect(ran.code).toBe(4);
    expect(errorOf(ran).code).toBe('CALL_NOT_PENDING');
    const none = await stage.perdure('resolve', id, 'landed', '--json');
    expect(none.code).toBe(3);
    expect(errorOf(none).code).toBe('UNKNOWN_CALL');
  });

  test('holds for the call that was seen', async () => {
    const id = await waiting('unknown_effect', 'lost:100');
    const { failed = [] } = await answers(id);
    const digest = failed[5] ?? '';
    expect(failed).toEqual(['resolve', id, 'call_1_0', 'failed', '--digest', digest, '--dispatch', '1']);
    for (const [typed, code] of [
      [['failed'], 'INVALID_ARGUMENT'],
      [['call_1_0'], 'INVALID_ARGUMENT'],
      // Named alone it may have been dispatched again since it was looked at.
      [['call_1_0', 'failed'], 'INVALID_ARGUMENT'],
      [['call_1_0', 'failed', '--digest', digest], 'INVALID_ARGUMENT'],
      [['call_1_0', 'failed', '--dispatch', '1'], 'INVALID_ARGUMENT'],
      [['call_1_0', 'failed', '--digest', '000000000000', '--dispatch', '1'], 'DIGEST_MISMATCH'],
      [['call_1_0', 'failed', '--digest', digest, '--dispatch', '0'], 'DISPATCH_MISMATCH'],
    ] as const) {
      const ran = await stage.perdure('resolve', id, ...typed, '--json');
      expect(errorOf(ran)).toMatchObject({ code, details: { args: { chargeId: 'lost', cents: 100 } } });
      expect((await stage.session(id).state()).phase).toBe('unknown_effect');
      const { commands = [] } = errorOf(ran).details as { commands?: string[] };
      if (code === 'INVALID_ARGUMENT') expect(commands.map(wordsOf)).toContainEqual(failed);
    }
    const lacking = await stage.perdure('resolve', id, 'failed');
    expect(lacking.stderr).toContain(`or: perdure ${failed.join(' ')}`);
  });
});

describe('a decision holds for what was seen', () => {
  /** The command that `show` prints for the only call that waits, as its arguments. */
  const printed = async (id: string): Promise<string[]> => {
    const { stdout } = await stage.perdure('show', id);
    return wordsOf(/next: (perdure .*)/.exec(stdout)?.[1] ?? '');
  };
  const untouched = async (id: string): Promise<void> =>
    expect((await stage.session(id).calls()).items.at(-1)).toMatchObject({
      status: { kind: 'approval' },
      decision: null,
    });

  test('whatever waits now is refused off a terminal', async () => {
    const id = await waiting('approval', 'ch_20:5001');
    const seen = await printed(id);
    await decide(stage.session(id), 'call_1_0', { decision: 'reject' }, { by: 'bob' });
    await untilPhase(stage.session(id), 'idle');
    await stage.session(id).send('refund ch_20:500000');
    await untilPhase(stage.session(id), 'approval');
    for (const typed of [['approve'], ['edit', '--args', '{}'], ['reject'], ['respond', '--output', 'no']]) {
      const ran = await stage.perdure(...typed, id, '--json');
      expect(ran.code).toBe(2);
      expect(errorOf(ran)).toMatchObject({
        code: 'INVALID_ARGUMENT',
        details: { callId: 'call_3_0', tool: 'refund', args: { chargeId: 'ch_20', cents: 500_000 } },
      });
      expect(wordsOf(errorOf(ran).next).slice(0, 5)).toEqual([
        typed[0],
        id,
        'call_3_0',
        '--digest',
        expect.any(String),
      ]);
    }
    const late = await stage.perdure(...seen, '--json');
    expect(late.code).toBe(4);
    expect(errorOf(late).code).toBe('CALL_NOT_PENDING');
    await untouched(id);
  });

  test('not for another call that has its id after a rewind', async () => {
    const id = stage.id('decide');
    await stage.begin(id, 'support', 'hello');
    await untilPhase(stage.session(id), 'idle');
    const [hello] = await stage.saver.list(id, { limit: 1 });
    await stage.session(id).send('refund ch_21:5001');
    await untilPhase(stage.session(id), 'approval');
    const seen = await printed(id);
    const message = 'refund ch_21:500000';
    await stage.json('checkpoints', 'rewind', id, hello?.id ?? '', '--message', message, '--yes');
    await untilPhase(stage.session(id), 'approval');

    expect(seen.slice(0, 4)).toEqual(['approve', id, 'call_2_0', '--digest']);
    const ran = await stage.perdure(...seen, '--json');
    expect(ran.code).toBe(4);
    expect(errorOf(ran)).toMatchObject({
      code: 'DIGEST_MISMATCH',
      details: { callId: 'call_2_0', tool: 'refund', args: { chargeId: 'ch_21', cents: 500_000 } },
    });
    await untouched(id);
    const { stderr } = await stage.perdure(...seen);
    expect(stderr).toContain('refund {"chargeId":"ch_21","cents":500000}');
    const [, next = ''] = /(perdure .*)$/m.exec(stderr) ?? [];
    expect(wordsOf(next)).toEqual(['show', id]);
    expect(await stage.json(...(await printed(id)))).toMatchObject({
      callId: 'call_2_0',
      decision: 'approve',
    });
    expect(await told(id)).toEqual([{ content: { refunded: 500_000 }, isError: false }]);
  });

  test('a script that names the call is told what it has approved, and --yes takes whatever waits', async () => {
    const id = await waiting('approval', 'ch_22:9000', 'ch_23:8000');
    const { code, stdout } = await stage.perdure('approve', id, 'call_1_0');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^approved call_1_0 {2}refund \{"chargeId":"ch_22","cents":9000\}\n/);
    expect(await stage.json('approve', id, '--yes')).toMatchObject({ args: { chargeId: 'ch_23' } });
    expect(await told(id)).toMatchObject([{ isError: false }, { isError: false }]);
  });

  test('a digest has to be as long as what is shown', async () => {
    const id = await waiting('approval', 'ch_25:9000');
    const seen = await printed(id);
    const shorter = [...seen.slice(0, -1), (seen.at(-1) ?? '').slice(0, -1)];
    const ran = await stage.perdure(...shorter, '--json');
    expect(ran.code).toBe(2);
    expect(errorOf(ran).message).toMatch(/--digest.*12 or more/s);
    expect(await stage.json(...seen)).toMatchObject({ callId: 'call_1_0', decision: 'approve' });
  });

  const lacks = noTerminal();
  test.skipIf(lacks !== null)(`at a terminal a person is asked (${lacks ?? 'with script'})`, async () => {
    const id = await waiting('approval', 'ch_24:9000');
    const type = (keys: string): Promise<Ran> =>
      typeInto(['approve', id], '[y/N] ', keys, { env: stage.env });
    for (const keys of ['\r', '\u0004']) {
      const { code, stdout } = await type(keys);
      expect(code).toBe(1);
      expect(stdout).toMatch(/call_1_0 .*refund.* \{"chargeId":"ch_24","cents":9000\}/);
      expect(stdout).toMatch(/digest \w{12}\b.*Record approve of call_1_0 by ada\? \[y\/N\]/s);
      expect(stdout).toContain('nothing was decided');
    }
    await untouched(id);
    expect((await type('y\r')).code).toBe(0);
    expect(await told(id)).toEqual([{ content: { refunded: 9_000 }, isError: false }]);
  });
});

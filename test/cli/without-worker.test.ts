import { Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type ServerHandle, startServer } from '../../src/server/index.ts';
import { untilPhase } from '../support/stage.ts';
import { errorOf, jsonLines, run } from './support/perdure.ts';
import { type CliStage, openStage } from './support/stage.ts';

/** `INDEXED_VALUE_TYPE_INT` of Temporal's API. */
const INT = 3;

interface Checks {
  ok: boolean;
  checks: { name: string; ok: boolean; detail: string; next: string | null }[];
}

describe('without a worker', () => {
  let stage: CliStage;
  beforeAll(async () => {
    stage = await openStage();
  });
  afterAll(() => stage.close());

  test('a session that nobody has taken yet is shown as it was started', async () => {
    const id = stage.id('untaken');
    await stage.json('start', 'support', 'hello', '--id', id, '--context', '{"tenant":"acme"}', '--usd', '3');
    const shown = await stage.json('show', id);
    expect(shown).toMatchObject({
      source: 'history',
      run: 'running',
      session: {
        agent: 'support',
        context: { tenant: 'acme' },
        phase: 'starting',
        queued: 1,
        budget: { limits: { usd: 3 } },
      },
    });
    const { code, stdout } = await stage.perdure('show', id);
    expect(code).toBe(0);
    expect(stdout).toMatch(/starting\n.*1 queued/);
    expect(stdout).toContain('read from the history');
  });

  test('what needs one says so, and what does not is done', async () => {
    const id = stage.id('alone');
    await stage.begin(id, 'support', 'hello');
    expect(await stage.json('pause', id)).toMatchObject({ asked: 'pause' });
    const [sent, tailed] = await Promise.all([
      stage.perdure('send', id, 'hello?', '--json'),
      stage.perdure('tail', id, '--once', '--json'),
    ]);
    expect(errorOf(sent).message).toContain(
      `with the id ${String(errorOf(sent).details['messageId'])}: the session takes an id once`,
    );
    expect(sent.stdout).toBe('');
    expect(jsonLines(tailed.stdout).at(-1)).toMatchObject({ type: 'phase', phase: 'starting' });
    for (const ran of [sent, tailed]) {
      expect(ran.code).toBe(5);
      expect(errorOf(ran)).toMatchObject({ code: 'NO_WORKER', next: 'perdure worker' });
      expect(errorOf(ran).message).toContain(id);
    }
  });

  test('Ctrl-C ends what is followed at once', async () => {
    const followed = stage.start([
      'start',
      'support',
      'hello',
      '--id',
      stage.id('left'),
      '--follow',
      '--json',
    ]);
    await followed.line((line) => line.includes('"session"'));
    followed.child.kill('SIGINT');
    expect(await followed.ended).toMatchObject({ code: 130, stderr: '' });
  });

  test('a session is read from its history: while it waits, and when it is closed or was ended from outside', async () => {
    const worker = await stage.startWorker();
    const [waits, ended, killed] = [stage.id('waits'), stage.id('ended'), stage.id('killed')];
    for (const id of [waits, killed]) await stage.begin(id, 'support', 'refund ch_1:9000');
    await stage.json('start', 'support', 'order 1', '--id', ended, '--task');
    await stage.session(ended).result();
    for (const id of [waits, killed]) await untilPhase(stage.session(id), 'approval');
    const live = await stage.session(waits).snapshot();
    worker.child.kill('SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0 });
    await stage.terminate(killed);

    // The task queue remembers the worker for a while; a closed session is not asked for at all.
    expect(await stage.json('show', ended)).toMatchObject({
      source: 'history',
      run: 'completed',
      session: { phase: 'closed', status: { kind: 'completed', text: 'done: order 1' } },
      calls: { total: 1 },
    });
    const shown = await stage.json('show', waits);
    expect(shown).toMatchObject({
      source: 'history',
      session: {
        phase: 'approval',
        turn: live.turn,
        pending: [{ callId: 'call_1_0', next: { action: 'decide', callId: 'call_1_0' } }],
      },
      transcript: { items: live.transcript },
    });
    expect(await stage.json('budget', waits)).toMatchObject({ spent: { turns: 1 } });
    const { stdout } = await stage.perdure('show', killed);
    expect(stdout).toMatch(new RegExp(`^${killed} {2}support {2}terminated\n`));
    const refused = await stage.perdure('approve', killed, '--json');
    expect(refused.code).toBe(4);
    expect(errorOf(refused).code).toBe('SESSION_CLOSED');
  });

  test('a workflow that is no session is not shown as one', async () => {
    const id = await stage.startOther();
    const ran = await stage.perdure('show', id, '--json');
    expect(ran.code).toBe(3);
    expect(errorOf(ran)).toMatchObject({ code: 'SESSION_NOT_FOUND', next: 'perdure ls' });
    expect(errorOf(ran).message).toMatch(/is a workflow of type other/);
  });
});

describe('on a server that knows nothing of sessions', () => {
  let server: ServerHandle;
  let env: Record<string, string>;
  beforeAll(async () => {
    server = await startServer({ inMemory: true });
    env = { TEMPORAL_ADDRESS: server.address, PERDURE_TASK_QUEUE: 'nobodys' };
  });
  afterAll(() => server.stop());

  test('doctor names what is missing, setup registers it once, and ls can filter then', async () => {
    const examined = await run(['doctor', '--json'], { env });
    expect(examined).toMatchObject({ code: 1, stderr: '' });
    const { ok, checks } = JSON.parse(examined.stdout) as Checks;
    expect(ok).toBe(false);
    expect(checks.map(({ name, ok }) => [name, ok])).toEqual([
      ['node', true],
      ['temporal', true],
      ['server', true],
      ['namespace', true],
      ['search attributes', false],
      ['workers', false],
      ['sessions', true],
    ]);
    expect(checks.find(({ name }) => name === 'server')?.detail).toContain('TEMPORAL_ADDRESS');
    expect(checks.find(({ name }) => name === 'search attributes')?.next).toBe('perdure setup');
    expect(checks.at(-2)).toMatchObject({
      detail: 'no worker polls task queue nobodys',
      next: 'perdure worker',
    });

    const unfiltered = await run(['ls', '--agent', 'echo', '--json'], { env });
    expect(unfiltered.code).toBe(2);
    expect(errorOf(unfiltered).message).toContain('perdure setup');

    const names = ['PerdureAgent', 'PerdureStatus', 'PerdureTenant'];
    const first = await run(['setup', '--json'], { env });
    expect(JSON.parse(first.stdout)).toMatchObject({ address: server.address, added: names, present: [] });
    const second = await run(['setup'], { env });
    expect(second.code).toBe(0);
    for (const name of names) expect(second.stdout).toContain(`  present ${name}\n`);

    const after = await run(['doctor'], { env });
    expect(after.code).toBe(1);
    expect(after.stdout).toMatch(/^ok +search attributes /m);
    expect(after.stdout).toMatch(/^problem +workers .*\n +next: perdure worker$/m);
    await expect.poll(async () => (await run(['ls', '--agent', 'echo'], { env })).code).toBe(0);
  });

  test('doctor names a search attribute of another type, and what to type', async () => {
    const connection = await Connection.connect({ address: server.address });
    onTestFinished(() => connection.close());
    const { operatorService } = connection;
    const named = { namespace: 'default', searchAttributes: ['PerdureStatus'] };
    // Absent unless the test before has registered it.
    await operatorService.removeSearchAttributes(named).catch(() => undefined);
    await operatorService.addSearchAttributes({ ...named, searchAttributes: { PerdureStatus: INT } });
    const { checks } = JSON.parse((await run(['doctor', '--json'], { env })).stdout) as Checks;
    expect(checks.find(({ name }) => name === 'search attributes')).toMatchObject({
      ok: false,
      detail: expect.stringContaining('PerdureStatus is not of type Keyword'),
      next: 'temporal operator search-attribute remove --namespace default --name PerdureStatus',
    });
  });
});

test('doctor says what to do when there is no server', async () => {
  const { code, stdout } = await run(['doctor', '--json'], { env: { TEMPORAL_ADDRESS: '127.0.0.1:1' } });
  expect(code).toBe(1);
  const { checks } = JSON.parse(stdout) as Checks;
  expect(checks.at(-1)).toMatchObject({
    name: 'server',
    ok: false,
    detail: expect.stringContaining('127.0.0.1:1'),
  });
});

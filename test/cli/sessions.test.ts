import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SessionSummary, SessionView } from '../../src/index.ts';
import { until, untilPhase } from '../support/stage.ts';
import { errorOf, jsonLines, wordsOf } from './support/perdure.ts';
import { type CliStage, openStage } from './support/stage.ts';

interface Shown {
  session: SessionView;
  source: string;
  run: string;
  transcript: { items: { role: string }[]; total: number };
  calls: { items: { id: string; issuedAt: string; completedAt: string }[]; total: number };
}

let stage: CliStage;
beforeAll(async () => {
  stage = await openStage();
  await stage.startWorker();
});
afterAll(() => stage.close());

describe('start', () => {
  test('starts a session, and says what to type next', async () => {
    const id = stage.id('plain');
    const { code, stdout, stderr } = await stage.perdure('start', 'echo', 'hello', '--id', id);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: `started ${id}\n  next: perdure tail ${id}\n`,
      stderr: '',
    });
    const { lastText } = await untilPhase(stage.session(id), 'idle');
    expect(lastText).toBe('you said: hello');
  });

  test('follows the answer, in text and in JSON', async () => {
    const id = stage.id('followed');
    const text = await stage.perdure('start', 'echo', 'hello there', '--id', id, '--follow');
    expect(text).toMatchObject({ code: 0, stdout: 'you said: hello there\n' });
    expect(text.stderr).toContain(`started ${id}\n`);
    expect(text.stderr).toMatch(/· idle\n$/);
    const sent = await stage.perdure('send', id, 'and more', '--follow', '--json');
    const parts = jsonLines(sent.stdout);
    const answers = parts.filter(({ type, role }) => type === 'message' && role === 'assistant');
    expect(answers).toMatchObject([{ text: 'you said: and more' }]);
    expect(parts.at(-1)).toMatchObject({ type: 'phase', phase: 'idle', view: { sessionId: id, turn: 2 } });
    expect(sent.stderr).toBe('');
  });

  test('takes mode, context, scratchpad and caps; a task ends with its answer', async () => {
    const id = stage.id('task');
    const caps = [
      '--usd',
      '0.5',
      '--tokens',
      '20000',
      '--turns',
      '4',
      '--tool-calls',
      '3',
      '--active',
      '10m',
    ];
    const where = ['--context', '{"tenant":"acme"}', '--scratchpad', '/srv/scratch pad'];
    const flags = ['--task', ...where, ...caps, '--follow', '--json'];
    const { code, stdout } = await stage.perdure('start', 'support', 'do it', '--id', id, ...flags);
    expect(code).toBe(0);
    const parts = jsonLines(stdout);
    expect(parts[0]).toMatchObject({ type: 'session', sessionId: id, agent: 'support', existing: false });
    expect(parts.at(-1)).toMatchObject({
      type: 'phase',
      phase: 'closed',
      view: { mode: 'task', context: { tenant: 'acme' }, scratchpadRoot: '/srv/scratch pad' },
    });
    const { limits } = await stage.json<{ limits: object }>('budget', id);
    expect(limits).toEqual({ usd: 0.5, tokens: 20_000, turns: 4, toolCalls: 3, activeMs: 600_000 });
  });

  test('takes the message from standard input', async () => {
    const id = stage.id('piped');
    const { ended } = stage.start(['start', 'echo', '-', '--id', id, '--follow'], { stdin: 'from a pipe\n' });
    expect(await ended).toMatchObject({ code: 0, stdout: 'you said: from a pipe\n' });
  });

  test('refuses an id that exists, unless the running session is wanted, which then gets the message', async () => {
    const id = stage.id('twice');
    await stage.begin(id, 'echo', 'first');
    await untilPhase(stage.session(id), 'idle');
    const refused = await stage.perdure('start', 'echo', 'second', '--id', id, '--json');
    expect(refused).toMatchObject({ code: 4, stdout: '' });
    expect(errorOf(refused)).toMatchObject({ code: 'SESSION_EXISTS', next: `perdure show ${id}` });
    const used = await stage.perdure('start', 'echo', 'third', '--id', id, '--use-existing', '--follow');
    expect(used).toMatchObject({ code: 0, stdout: 'you said: third\n' });
    const capped = ['start', 'echo', 'capped', '--id', id, '--use-existing', '--turns', '5', '--json'];
    const changed = await stage.perdure(...capped);
    expect(changed).toMatchObject({ code: 4, stdout: '' });
    expect(errorOf(changed)).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('budget.turns: session'),
      next: `perdure budget ${id}`,
    });
    expect(await stage.session(id).state()).toMatchObject({ messages: 4, queued: 0 });
    await stage.json('cancel', id);
    await stage.session(id).result();
    const closed = await stage.perdure('start', 'echo', 'fourth', '--id', id, '--use-existing');
    expect(closed.code).toBe(4);
    expect(closed.stderr).toMatch(/^error SESSION_CLOSED: /);
  });

  test('gives no message to a session of another agent', async () => {
    const id = stage.id('others');
    await stage.begin(id, 'support', 'first');
    await untilPhase(stage.session(id), 'idle');
    const ran = await stage.perdure('start', 'echo', 'second', '--id', id, '--use-existing', '--json');
    expect(ran).toMatchObject({ code: 4, stdout: '' });
    expect(errorOf(ran)).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('to agent support, not to echo'),
    });
    expect(await stage.session(id).state()).toMatchObject({ messages: 2, queued: 0 });
  });

  test('of an agent that no worker has, says so, and which session waits', async () => {
    const id = stage.id('nobody');
    const ran = await stage.perdure('start', 'nobody', 'hello', '--id', id, '--follow', '--json');
    expect(ran.code).toBe(3);
    const { code, message, details } = errorOf(ran);
    expect(code).toBe('UNKNOWN_AGENT');
    expect(message).toMatch(/nobody.*perdure resume/);
    expect(details).toEqual({ agent: 'nobody', sessionId: id });
  });
});

describe('send', () => {
  test('queues a message once, however often it is sent with one id', async () => {
    const id = stage.id('once');
    await stage.begin(id, 'echo');
    await untilPhase(stage.session(id), 'idle');
    for (const _ of [1, 2]) {
      const sent = await stage.json('send', id, 'only once', '--id', 'm1', '--pin');
      expect(sent).toMatchObject({ sessionId: id, next: `perdure tail ${id}` });
    }
    await until(stage.session(id), ({ phase, messages }) => phase === 'idle' && messages === 2);
    expect((await stage.perdure('show', id, '--view')).stdout).toContain('user (pinned)');
  });

  test('waits in the queue, where it is seen, changed and withdrawn', async () => {
    const id = stage.id('queue');
    await stage.begin(id, 'echo', 'hang');
    await untilPhase(stage.session(id), 'thinking');
    for (const name of ['one', 'two']) await stage.json('send', id, name, '--id', name, '--by', 'ada');
    expect((await stage.perdure('queue', id)).stdout).toMatch(
      /^one {2}"one"\n {2}by ada at .*\ntwo {2}"two"\n.*\nnext: perdure queue .* one --withdraw\n$/,
    );
    await stage.json('queue', id, 'two', '--edit', 'three', '--by', 'eve');
    expect(await stage.json('queue', id, 'one', '--withdraw')).toMatchObject({ withdrawn: true, queued: 1 });
    expect(await stage.json('queue', id)).toMatchObject({
      items: [{ id: 'two', text: 'three', edited: { by: 'eve' } }],
    });
    const again = await stage.perdure('queue', id, 'none', '--withdraw', '--json');
    expect(again.code).toBe(4);
    expect(errorOf(again)).toMatchObject({ code: 'MESSAGE_NOT_QUEUED', next: `perdure queue ${id}` });
    expect((await stage.perdure('queue', id, 'two')).code).toBe(2);
  });

  test('interrupts a turn that does not end by itself', async () => {
    const id = stage.id('interrupt');
    await stage.begin(id, 'echo', 'hang');
    await untilPhase(stage.session(id), 'thinking');
    const { code, stdout } = await stage.perdure('send', id, 'stop it', '--interrupt', '--follow');
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'you said: stop it\n' });
  });

  test('answers a message on the side while a call waits for its approval', async () => {
    const id = stage.id('aside');
    await stage.begin(id, 'support', 'refund ch_1:9000');
    await untilPhase(stage.session(id), 'approval');
    const { code, stdout } = await stage.perdure('send', id, 'why?', '--aside', '--follow');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^you said: why\?\n/);
    expect((await stage.perdure('show', id, '--messages', '2')).stdout).toMatch(/assistant \(on the side\)/);
  });

  test.each([['send', 'x'], ['pause'], ['resume'], ['cancel'], ['show'], ['tail'], ['approve'], ['budget']])(
    '%s to a session that is not there is told by its name',
    async (verb, ...more) => {
      const ran = await stage.perdure(verb, 'no-such-session', ...more, '--json');
      expect(ran).toMatchObject({ code: 3, stdout: '' });
      expect(errorOf(ran)).toMatchObject({ code: 'SESSION_NOT_FOUND', next: 'perdure ls' });
      expect(errorOf(ran).message).toContain('no-such-session');
    },
  );
});

describe('show', () => {
  test('shows plan, budget, messages and the log with both times', async () => {
    const id = stage.id('shown');
    await stage.json('start', 'support', 'plan', '--id', id, '--usd', '1');
    await until(stage.session(id), ({ phase, messages }) => phase === 'idle' && messages === 4);
    await stage.json('send', id, 'order 17');
    await until(stage.session(id), ({ phase, messages }) => phase === 'idle' && messages === 8);

    const shown = await stage.json<Shown>('show', id, '--messages', '2');
    expect(shown).toMatchObject({ source: 'worker', run: 'running' });
    expect(shown.session).toMatchObject({ sessionId: id, agent: 'support', phase: 'idle', turn: 4 });
    expect(shown.session.plan).toMatchObject([{ id: 's1', title: 'Look at the order' }]);
    expect(shown.transcript).toMatchObject({ items: [{ role: 'tool' }, { role: 'assistant' }], total: 8 });
    // Nothing is summarized: the model sees it all.
    const seen = await stage.json<Shown>('show', id, '--view', '--messages', '2');
    expect(seen.transcript).toEqual(shown.transcript);
    const order = shown.calls.items.at(-1);
    expect(Date.parse(order?.completedAt ?? '')).toBeGreaterThanOrEqual(Date.parse(order?.issuedAt ?? ''));

    const { code, stdout } = await stage.perdure('show', id);
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^${id} {2}support {2}idle: waits for a message\n`));
    expect(stdout).toContain('[>] s1 Look at the order');
    expect(stdout).toMatch(/ {2}usd +\$0\.\d+ of \$1\.00\n/);
    expect(stdout).toContain('-> order {"id":"17"}');
    expect(stdout).toContain('<- order {"id":"17","cents":9000}');
    expect(stdout).toContain(`issued ${order?.issuedAt} · ended ${order?.completedAt}`);
  });

  test('says that a model has no price instead of a cost of nothing', async () => {
    const id = stage.id('unpriced');
    await stage.begin(id, 'echo', 'hello');
    await untilPhase(stage.session(id), 'idle');
    expect((await stage.perdure('show', id)).stdout).toMatch(/\n {2}usd +no price for \S*scripted\n/);
    const { unpriced } = await stage.json<{ unpriced: string[] }>('budget', id);
    expect(unpriced).toEqual([expect.stringContaining('scripted')]);
  });

  test('shows what would move the cursor of a terminal as text', async () => {
    const id = stage.id('escape');
    await stage.begin(id, 'echo', 'escape');
    await untilPhase(stage.session(id), 'idle');
    for (const args of [
      ['show', id],
      ['tail', id, '--once'],
    ]) {
      const { code, stdout } = await stage.perdure(...args);
      expect(code).toBe(0);
      expect(stdout).toContain('before \\u001b[2J after');
    }
  });
});

describe('tail', () => {
  test('shows what is said until the session is closed', async () => {
    const id = stage.id('tail');
    await stage.begin(id, 'echo', 'one');
    await untilPhase(stage.session(id), 'idle');
    const tail = stage.start(['tail', id, '--json']);
    const message = (text: string): Promise<boolean> =>
      tail.line((line) => {
        const part = JSON.parse(line) as { type: string; text?: string };
        return part.type === 'message' && part.text === text;
      });
    await message('you said: one');
    await stage.session(id).send('two');
    await message('you said: two');
    await stage.session(id).send('three');
    await message('you said: three');
    await stage.session(id).cancel();
    const { code, stdout } = await tail.ended;
    expect(code).toBe(0);
    expect(jsonLines(stdout).at(-1)).toMatchObject({ type: 'phase', phase: 'closed' });
    const answers = jsonLines(stdout).filter(({ type, role }) => type === 'message' && role === 'assistant');
    expect(answers).toHaveLength(3);
  });

  test('ends with 130 at Ctrl-C, and the session goes on', async () => {
    const id = stage.id('ctrl-c');
    await stage.begin(id, 'echo', 'one');
    const tail = stage.start(['tail', id, '--json']);
    await tail.line((line) => line.includes('"idle"'));
    tail.child.kill('SIGINT');
    expect(await tail.ended).toMatchObject({ code: 130, stderr: '' });
    expect((await stage.session(id).state()).status.kind).toBe('active');
  });
});

describe('ls', () => {
  test('lists by agent, tenant and status, as a table and as JSON lines', async () => {
    const tenant = stage.id('tenant');
    const ids = [stage.id('listed'), stage.id('listed')];
    for (const id of ids)
      await stage.json('start', 'echo', 'hello', '--id', id, '--context', JSON.stringify({ tenant }));
    const list = async (...filter: string[]): Promise<SessionSummary[]> => {
      const { code, stdout, stderr } = await stage.perdure('ls', '--json', '--tenant', tenant, ...filter);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return jsonLines(stdout) as unknown as SessionSummary[];
    };
    await expect.poll(async () => (await list('--agent', 'echo')).length).toBe(2);
    const [newest] = await list('--limit', '1');
    expect(newest).toMatchObject({ id: ids[1], agent: 'echo', status: 'active', tenant, closedAt: null });
    expect(await list('--status', 'cancelled')).toEqual([]);
    expect(await list('--agent', "it's nobody's")).toEqual([]);

    const { stdout } = await stage.perdure('ls', '--tenant', tenant);
    const [head, ...rows] = stdout.trimEnd().split('\n');
    expect(head).toMatch(/^ID +AGENT +AGE +STATUS$/);
    expect(rows.map((row) => row.split(/ +/)[0])).toEqual([ids[1], ids[0]]);
    const elsewhere = await stage.perdure('ls', '--tenant', tenant, '--task-queue', 'other');
    expect(elsewhere.stdout).toMatch(/^ID +AGENT +QUEUE +AGE +STATUS\n/);

    const none = await stage.perdure('ls', '--tenant', 'nobody');
    expect(none).toMatchObject({ code: 0, stdout: '', stderr: 'no sessions\n' });
  });
});

test('ls with ids that were not named fits a terminal of 80 columns', async () => {
  const tenant = stage.id('tenant');
  const { sessionId } = await stage.json<{ sessionId: string }>(
    'start',
    'support',
    'refund ch_9:9000',
    '--context',
    JSON.stringify({ tenant }),
  );
  await untilPhase(stage.session(sessionId), 'approval');
  const listed = async (): Promise<string> => (await stage.perdure('ls', '--tenant', tenant)).stdout;
  await expect.poll(listed).toContain('approval: refund');
  for (const line of (await listed()).split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});

describe('pause, resume, cancel', () => {
  test('stop a session, let it go on, and end it, by name and with the reason', async () => {
    const id = stage.id('steered');
    await stage.begin(id, 'echo', 'hang');
    await untilPhase(stage.session(id), 'thinking');
    expect(await stage.json('pause', id, '--now', '--reason', 'lunch')).toEqual({
      sessionId: id,
      asked: 'pause',
      by: 'ada',
      next: `perdure resume ${id}`,
    });
    const paused = await untilPhase(stage.session(id), 'paused');
    expect(paused.paused).toMatchObject({ by: 'ada', reason: 'lunch' });
    const { stdout } = await stage.perdure('show', id);
    expect(stdout).toMatch(new RegExp(`paused by ada at .*: lunch\n {2}next: perdure resume ${id}`));

    expect(await stage.json('resume', id, '--by', 'bob')).toMatchObject({ asked: 'resume', by: 'bob' });
    await untilPhase(stage.session(id), 'thinking');
    expect(await stage.json('cancel', id, '--reason', 'enough')).toMatchObject({ asked: 'cancel' });
    expect(await stage.session(id).result()).toMatchObject({ status: 'cancelled' });

    for (const verb of ['send', 'pause', 'cancel']) {
      const ran = await stage.perdure(verb, id, ...(verb === 'send' ? ['x'] : []), '--json');
      expect(ran.code).toBe(4);
      expect(errorOf(ran).code).toBe('SESSION_CLOSED');
    }
  });
});

test('what is to be typed next is for this session, whatever its id would be to a shell', async () => {
  const id = `${stage.id('odd')}; \`ls\` $(ls) it's | it`;
  const said: string[] = [];
  const perdure = async (...args: string[]): Promise<void> => {
    const { code, stdout, stderr } = await stage.perdure(...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const [, command = ''] of stdout.matchAll(/ (perdure .*)/g)) {
      const [verb = '', ...words] = wordsOf(command);
      said.push(verb);
      expect(words[0]).toBe(id);
    }
  };
  await perdure('start', 'support', 'refund ch_1:9000', '--id', id);
  await untilPhase(stage.session(id), 'approval');
  await perdure('show', id);
  await perdure('approve', id, 'call_1_0');
  await untilPhase(stage.session(id), 'idle');
  await perdure('send', id, 'hello');
  await until(stage.session(id), ({ phase, turn }) => phase === 'idle' && turn === 3);
  await perdure('pause', id);
  await untilPhase(stage.session(id), 'paused');
  await perdure('show', id);
  await perdure('resume', id);
  await perdure('cancel', id);
  const shown = ['approve', 'reject', 'edit', 'respond'];
  expect(said).toEqual(['tail', ...shown, 'tail', 'tail', 'resume', 'resume', 'tail', 'show']);
});

describe('budget', () => {
  test('shows what is spent, and a higher cap lets a session go on', async () => {
    const id = stage.id('budget');
    await stage.json('start', 'support', 'order 1', '--id', id, '--turns', '1');
    await untilPhase(stage.session(id), 'waiting');
    const { stdout } = await stage.perdure('show', id);
    expect(stdout).toMatch(/^budget since /m);
    const before = await stage.json('budget', id);
    expect(before).toMatchObject({ limits: { turns: 1 }, spent: { turns: 1, toolCalls: 1 } });
    const after = await stage.json('budget', id, '--turns', '5', '--usd', '2');
    expect(after).toMatchObject({ limits: { turns: 5, usd: 2 } });
    const done = await untilPhase(stage.session(id), 'idle');
    expect(done.lastText).toBe('done: order 1');
    const text = await stage.perdure('budget', id);
    expect(text.stdout).toMatch(/ {2}turns +2 of 5\n/);
  });

  test('--finish lets a session close with a summary', async () => {
    const id = stage.id('finish');
    await stage.json('start', 'support', 'order 1', '--id', id, '--turns', '1');
    await untilPhase(stage.session(id), 'waiting');
    await stage.json('budget', id, '--finish');
    await expect.poll(async () => (await stage.session(id).state()).turn).toBe(2);
    expect((await stage.session(id).calls()).total).toBe(1);
  });
});

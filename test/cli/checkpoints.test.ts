import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SqliteArchive } from '../../src/archive/door.ts';
import { archiveWorkflowId } from '../../src/contract/archive.ts';
import type { Change, Checkpoint, Message, SessionView } from '../../src/index.ts';
import { until, untilPhase } from '../support/stage.ts';
import { errorOf, jsonLines, noTerminal, type Ran, type Running, run, typeInto } from './support/perdure.ts';
import { type CliStage, openStage } from './support/stage.ts';

let stage: CliStage;
let directory: string;
const missing = noTerminal();
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'perdure-export-'));
  stage = await openStage();
  await stage.startWorker();
});
afterAll(async () => {
  await stage.close();
  await rm(directory, { recursive: true });
});

interface Listed extends Checkpoint {
  turn: number;
  phase: string;
  messages: number;
}

const list = async (id: string, ...args: string[]): Promise<Listed[]> => {
  const { code, stdout, stderr } = await stage.perdure('checkpoints', 'ls', id, ...args, '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return jsonLines(stdout) as unknown as Listed[];
};

/** A session that has made two refunds, one a message, and the checkpoint between them. */
async function refunded(): Promise<{ id: string; between: Listed; view: SessionView }> {
  // An id that a shell would take apart.
  const id = `${stage.id('it is')} & more`;
  await stage.begin(id, 'support', 'refund ch_1:100');
  await untilPhase(stage.session(id), 'idle');
  const [between] = await list(id, '--limit', '1');
  if (between === undefined) throw new Error('no checkpoint');
  await stage.session(id).send('refund ch_2:200');
  const view = await untilPhase(stage.session(id), 'idle');
  return { id, between, view };
}

describe('checkpoints', () => {
  test('of a session over many runs show it as one', async () => {
    const id = stage.id('brief');
    const session = stage.session(id);
    await stage.begin(id, 'brief', 'word 0');
    for (let n = 1; n < 6; n++) {
      await until(session, ({ phase, messages }) => phase === 'idle' && messages === 2 * n);
      await session.send(`word ${n}`);
    }
    await until(session, ({ phase, messages }) => phase === 'idle' && messages === 12);
    const all = await list(id, '--limit', '100');
    expect(new Set(all.map((one) => one.id.split(':')[0])).size).toBeGreaterThan(1);
    expect(all[0]?.messages).toBe(12);
    const shown = await stage.json<Checkpoint>('checkpoints', 'show', id);
    expect(shown.state['transcript']).toHaveLength(12);
    const { stdout } = await stage.perdure('checkpoints', 'show', id, '--messages', '20');
    expect(stdout).toContain('word 0');
    const early = all.find(({ messages }) => messages === 2)?.id ?? '';
    const { changes } = await stage.json<{ changes: Change[] }>(
      'checkpoints',
      'diff',
      id,
      early,
      all[0]?.id ?? '',
    );
    const said = changes.filter(({ path }) => path.startsWith('/transcript'));
    expect(said.map(({ op }) => op)).toEqual(Array(10).fill('add'));
  });

  test('are listed, shown, compared and exported', async () => {
    const { id, between, view } = await refunded();
    expect(between).toMatchObject({ phase: 'idle', messages: 4 });
    expect(between).not.toHaveProperty('state');

    const all = await list(id, '--limit', '100');
    expect(await list(id, '--before', all[0]?.id ?? '', '--limit', '2')).toEqual(all.slice(1, 3));
    const text = await stage.perdure('checkpoints', 'ls', id, '--limit', '1');
    expect(text.stdout).toContain(`next: perdure checkpoints ls '${id}' --before ${all[0]?.id}\n`);
    expect(text.stdout).toMatch(/idle +8\n/);

    const shown = await stage.json<Checkpoint>('checkpoints', 'show', id);
    expect(shown).toMatchObject({ id: all[0]?.id, state: { turn: view.turn } });
    const then = await stage.perdure('checkpoints', 'show', id, between.id);
    expect(then.stdout).toContain(`checkpoint ${between.id}\n`);
    expect(then.stdout).toContain('"chargeId":"ch_1"');
    expect(then.stdout).not.toContain('ch_2');

    const { changes } = await stage.json<{ changes: Change[] }>(
      'checkpoints',
      'diff',
      id,
      between.id,
      all[0]?.id ?? '',
    );
    expect(changes).toContainEqual(
      expect.objectContaining({
        op: 'add',
        path: '/calls/1',
        value: expect.objectContaining({ name: 'refund' }),
      }),
    );

    const file = join(directory, 'past.jsonl');
    expect(await stage.json('checkpoints', 'export', id, file)).toEqual({
      sessionId: id,
      file,
      checkpoints: all.length,
    });
    const exported = jsonLines(await readFile(file, 'utf8'));
    expect(exported.map(({ id }) => id)).toEqual(all.map(({ id }) => id).reverse());
    expect(exported.at(-1)).toEqual(shown);
    const printed = await stage.perdure('checkpoints', 'export', id, '-');
    expect(jsonLines(printed.stdout)).toEqual(exported);
    const again = await stage.perdure('checkpoints', 'export', id, file, '--json');
    expect(again.code).toBe(2);
    expect(errorOf(again)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      next: 'perdure checkpoints export --help',
    });
  });

  test('are not exported in part: a file that cannot take all of them is not made, and can be named again', async () => {
    const id = stage.id('large');
    await stage.begin(id, 'support', `refund ch_1:100 ${'x'.repeat(20_000)}`);
    await untilPhase(stage.session(id), 'idle');
    const into = await mkdtemp(join(directory, 'full-'));
    const file = join(into, 'session.jsonl');
    const full = await stage.start(['checkpoints', 'export', id, file, '--json'], { fileBlocks: 64 }).ended;
    expect(full.code).toBe(2);
    expect(errorOf(full)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(`file: ${file} cannot be written: EFBIG`),
    });
    expect(await readdir(into)).toEqual([]);
    const { checkpoints } = await stage.json<{ checkpoints: number }>('checkpoints', 'export', id, file);
    expect(jsonLines(await readFile(file, 'utf8'))).toHaveLength(checkpoints);
    expect(await readdir(into)).toEqual(['session.jsonl']);
  });

  test('a fork goes on beside the session, a rewind in its place, after a word about what has happened', async () => {
    const { id, between } = await refunded();
    const other = stage.id('fork');
    expect(
      await stage.json(
        'checkpoints',
        'fork',
        id,
        between.id,
        '--id',
        other,
        '--message',
        'refund ch_3:300',
        '--reason',
        'what if',
      ),
    ).toEqual({
      sessionId: other,
      from: { sessionId: id, checkpointId: between.id },
      by: 'ada',
      next: `perdure tail ${other}`,
    });
    expect(await untilPhase(stage.session(other), 'idle')).toMatchObject({ agent: 'support', calls: 2 });

    const unsaid = await stage.perdure('checkpoints', 'rewind', id, between.id, '--json');
    expect(unsaid).toMatchObject({ code: 2, stdout: '' });
    expect(errorOf(unsaid)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('--yes'),
      details: {
        effects: [{ tool: 'refund', args: { chargeId: 'ch_2', cents: 200 }, output: { refunded: 200 } }],
      },
    });
    expect(await stage.session(id).state()).toMatchObject({ calls: 2 });

    const done = await stage.perdure(
      'checkpoints',
      'rewind',
      id,
      between.id,
      '--yes',
      '--message',
      'refund ch_2:200',
    );
    expect(done).toMatchObject({ code: 0, stderr: '' });
    expect(done.stdout).toContain(`later effects that stay: 1\n  next: perdure tail '${id}'`);
    await untilPhase(stage.session(id), 'idle');
    const { items } = await stage.session(id).calls();
    expect(items.map(({ replayOf }) => replayOf !== null)).toEqual([false, true]);
  });

  test('a fork starts with the edits that it is given, as JSON or in a file, and with none that cannot be made', async () => {
    const { id, between, view } = await refunded();
    const fork = (checkpoint: string, edits: string, ...args: string[]): Promise<Ran> =>
      stage.perdure('checkpoints', 'fork', id, checkpoint, '--edits', edits, '--json', ...args);
    const past = await stage.json<Checkpoint>('checkpoints', 'show', id, between.id);
    const transcript = past.state['transcript'] as unknown as Message[];
    const [first] = transcript;
    const blocks = [{ kind: 'text', text: 'refund ch_7:700' }];
    const edits = { transcript: { from: 0, messages: [{ ...first, blocks }, ...transcript.slice(1)] } };
    const file = join(directory, 'edits.json');
    await writeFile(file, JSON.stringify(edits));
    const plan = [{ id: 's1', title: 'Look again', status: 'pending' }];
    for (const given of [`@${file}`, JSON.stringify({ ...edits, plan })]) {
      const other = stage.id('edited');
      const forked = await fork(between.id, given, '--id', other, '--message', 'go on', '--reason', 'a typo');
      expect(forked).toMatchObject({ code: 0, stderr: '' });
      const { lastText, notices } = await untilPhase(stage.session(other), 'idle');
      expect(lastText).toBe('you said: go on');
      const text = expect.stringMatching(/^ada edited transcript.*: a typo$/);
      expect(notices).toContainEqual(expect.objectContaining({ kind: 'edit', message: text }));
      const { items } = await stage.session(other).transcript();
      expect(items[0]?.blocks).toEqual(blocks);
      expect(items.slice(1, transcript.length)).toEqual(transcript.slice(1));
      expect(await stage.session(other).plan()).toMatchObject(
        given.startsWith('@') ? [] : [{ title: 'Look again' }],
      );
    }
    expect(await stage.session(id).state()).toEqual(view);

    const { id: acting } =
      (await list(id, '--limit', '100')).findLast(({ phase }) => phase === 'acting') ?? {};
    for (const [checkpoint, given, problem] of [
      [between.id, '{"transcripts": {}}', '--edits: transcripts: is unknown'],
      [between.id, '[]', '--edits: input: '],
      [between.id, '{"transcript": {"from": 99, "messages": []}}', '--edits: transcript.from is 99'],
      [between.id, '{"transcript": {"from": -1, "messages": []}}', '--edits: transcript.from: '],
      [between.id, `{"digest": "${between.id}"}`, '--edits: the transcript has changed'],
      [between.id, '{', '--edits is not JSON'],
      [acting ?? '', '{"plan": []}', '--edits: a turn was running'],
    ] as const) {
      const other = stage.id('refused');
      const refused = await fork(checkpoint, given, '--id', other);
      expect(refused).toMatchObject({ code: 2, stdout: '' });
      expect(errorOf(refused)).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining(problem),
      });
      await expect(stage.session(other).state()).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
    }
  });

  test.skipIf(missing !== null)(
    `a rewind at a terminal shows the effects and asks for the session's id: another word changes nothing${missing === null ? '' : `, skipped: ${missing}`}`,
    async () => {
      const { id, between, view } = await refunded();
      const type = (keys: string | (() => Promise<string>)): Promise<Ran> =>
        typeInto(['checkpoints', 'rewind', id, between.id], 'to rewind it: ', keys, { env: stage.env });
      for (const [keys, code] of [
        ['yes\r', 1],
        ['\r', 1],
        // Ctrl-D and Ctrl-C.
        ['\u0004', 1],
        ['\u0003', 130],
      ] as const) {
        const ran = await type(keys);
        expect(ran.code, ran.stdout).toBe(code);
        expect(ran.stdout).toContain('refund {"chargeId":"ch_2","cents":200} -> {"refunded":200}');
        expect(ran.stdout).not.toContain('ch_1');
        if (code === 1) expect(ran.stdout).toContain('not rewound');
      }
      expect(await stage.session(id).state()).toEqual(view);
      // What completes while it is thought about was not shown, and stays as well.
      const ran = await type(async () => {
        await stage.session(id).send('refund ch_3:300');
        await untilPhase(stage.session(id), 'idle');
        return `${id}\r`;
      });
      expect(ran.code, ran.stdout).toBe(0);
      expect(ran.stdout).not.toContain('ch_3');
      expect(ran.stdout).toContain(`rewound ${id} to ${between.id}; later effects that stay: 2`);
      expect(await untilPhase(stage.session(id), 'idle')).toMatchObject({ calls: 1 });
    },
  );

  test('what is not there is named, and a rewind over an open mutation is refused', async () => {
    const nobody = await stage.perdure('checkpoints', 'show', 'nobody', '--json');
    expect(nobody.code).toBe(3);
    expect(errorOf(nobody)).toMatchObject({ code: 'SESSION_NOT_FOUND', next: 'perdure ls' });

    const id = stage.id('lost');
    await stage.begin(id, 'support', 'refund lost:100');
    await untilPhase(stage.session(id), 'unknown_effect');
    const [latest] = await list(id);
    const missing = await stage.perdure('checkpoints', 'show', id, `${latest?.id}0`, '--json');
    expect(missing.code).toBe(3);
    expect(errorOf(missing)).toMatchObject({
      code: 'CHECKPOINT_NOT_FOUND',
      next: `perdure checkpoints ls ${id}`,
    });
    const refused = await stage.perdure('checkpoints', 'rewind', id, latest?.id ?? '', '--yes', '--json');
    expect(refused).toMatchObject({ code: 4, stdout: '' });
    expect(errorOf(refused)).toMatchObject({ code: 'SESSION_BUSY', details: { open: ['call_1_0'] } });

    // Of a session that Temporal has ended nobody could say what became of it.
    const first = (await list(id, '--limit', '100')).at(-1)?.id ?? '';
    await stage.terminate(id);
    const doubtful = { callId: 'call_1_0', again: 'doubtful', args: { chargeId: 'lost', cents: 100 } };
    const unsaid = await stage.perdure('checkpoints', 'rewind', id, first, '--json');
    expect(errorOf(unsaid)).toMatchObject({ code: 'INVALID_ARGUMENT', details: { effects: [doubtful] } });
    expect(await stage.json('checkpoints', 'rewind', id, first, '--yes')).toMatchObject({
      sessionId: id,
      effects: [doubtful],
    });
    await untilPhase(stage.session(id), 'unknown_effect');
  });

  test('are archived by a process of their own, also when it was killed, and the archive is held against the history', async () => {
    const id = stage.id('archived');
    await stage.begin(id, 'echo', 'hello');
    await untilPhase(stage.session(id), 'idle');
    const some = await list(id, '--limit', '100');
    const file = join(directory, 'archive.sqlite');
    const startArchive = (): Running => stage.start(['archive', file, '--name', stage.taskQueue, '--json']);
    const killed = startArchive();
    const ready = await killed.line((line) => line);
    expect(JSON.parse(ready)).toMatchObject({ type: 'ready', file, pid: killed.child.pid });
    const stored = new SqliteArchive(file);
    await expect
      .poll(async () => (await stored.list(id, null, 100)).map((checkpoint) => checkpoint.id), {
        timeout: 60_000,
      })
      .toEqual(some.map((checkpoint) => checkpoint.id));

    killed.child.kill('SIGKILL');
    await killed.ended;
    await stage.session(id).send('still there?');
    await untilPhase(stage.session(id), 'idle');
    const all = await list(id, '--limit', '100', '--archive', file);
    expect(all.slice(all.length - some.length)).toEqual(some);
    const archive = startArchive();
    await expect
      .poll(async () => (await stored.list(id, null, 100)).map((checkpoint) => checkpoint.id), {
        timeout: 60_000,
      })
      .toEqual(all.map((checkpoint) => checkpoint.id));
    await stored.close();
    expect(await stage.json('checkpoints', 'audit', id, file)).toEqual({
      sessionId: id,
      runs: 1,
      equal: all.length,
      pending: 0,
      difference: null,
    });
    const status = await stage.json('archive', file, '--name', stage.taskQueue, '--status');
    expect(status).toMatchObject({ file, exporter: { name: stage.taskQueue, failure: null } });
    // The archive's name may come from the environment.
    const env = { ...stage.env, PERDURE_ARCHIVE: file };
    const named = await run(['archive', '--name', stage.taskQueue, '--status', '--json'], { env });
    expect(JSON.parse(named.stdout)).toMatchObject({ file, exporter: { name: stage.taskQueue } });
    archive.child.kill('SIGTERM');
    expect(await archive.ended).toMatchObject({ code: 0, stderr: '' });
    // The command that starts it again is whole.
    const silent = await stage.perdure('archive', file, '--name', stage.taskQueue, '--status');
    expect(silent.stdout).toContain(`next: perdure archive ${file} --name ${stage.taskQueue}\n`);
    const fromEnv = await run(['archive', '--name', stage.taskQueue, '--status'], { env });
    expect(fromEnv.stdout).toContain(`next: perdure archive --name ${stage.taskQueue}\n`);

    // An exporter that was ended from outside is not run in silence.
    const idle = startArchive();
    await idle.line((line) => line);
    await stage.terminate(archiveWorkflowId(stage.taskQueue));
    const ended = await idle.ended;
    expect(ended.code).toBe(4);
    expect(errorOf(ended)).toMatchObject({
      code: 'SESSION_CLOSED',
      message: expect.stringContaining(`ended the exporter workflow ${archiveWorkflowId(stage.taskQueue)}`),
    });

    const copy = `${file}.copy`;
    const other = new Database(file);
    other.exec(`VACUUM INTO '${copy}'`);
    other.exec("UPDATE checkpoints SET created_at = ''");
    other.close();
    const audited = await stage.perdure('checkpoints', 'audit', id, file);
    expect(audited).toMatchObject({ code: 1, stderr: '' });
    expect(audited.stdout).toContain(
      `the first difference: ${file}: checkpoint ${all.at(-1)?.id} has changed since it was stored`,
    );
    const missing = await stage.perdure('checkpoints', 'audit', id, `${file}.not`, '--json');
    expect(missing.code).toBe(2);
    expect(errorOf(missing).message).toContain('does not exist');

    // What the server no longer has is exported from the archive.
    await stage.session(id).cancel();
    await stage.session(id).result();
    await stage.saver.delete(id);
    const past = join(directory, 'archived.jsonl');
    expect(await stage.json('checkpoints', 'export', id, past, '--archive', copy)).toEqual({
      sessionId: id,
      file: past,
      checkpoints: all.length,
    });
    const exported = jsonLines(await readFile(past, 'utf8'));
    expect(exported.map((line) => line['id'])).toEqual(all.map((checkpoint) => checkpoint.id).reverse());

    // A session also continues from an archive that only the environment names.
    const rested = all.find(({ phase }) => phase === 'idle')?.id ?? '';
    const continued = async (verb: string, ...args: string[]): Promise<Ran> =>
      run(['checkpoints', verb, id, rested, ...args, '--message', 'and now?', '--json'], {
        env: { ...stage.env, PERDURE_ARCHIVE: copy },
      });
    const branch = stage.id('branch');
    expect(await continued('fork', '--id', branch)).toMatchObject({ code: 0, stderr: '' });
    await untilPhase(stage.session(branch), 'idle');
    expect(await continued('rewind', '--yes')).toMatchObject({ code: 0, stderr: '' });
    await untilPhase(stage.session(id), 'idle');
  }, 240_000);
});

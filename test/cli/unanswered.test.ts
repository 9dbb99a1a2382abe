/** The server has done what it was asked, and its answer is lost: what the error says to type does it once. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWire, type Wire } from '../../src/testing/index.ts';
import { until, untilPhase } from '../support/stage.ts';
import { errorOf, jsonLines, type Running, wordsOf } from './support/perdure.ts';
import { type CliStage, openStage } from './support/stage.ts';

let stage: CliStage;
const wires: Wire[] = [];
beforeAll(async () => {
  stage = await openStage();
  await stage.startWorker();
});
afterAll(async () => {
  await Promise.all(wires.map((wire) => wire.close()));
  await stage.close();
});

/** Runs `perdure` on a wire that passes all but the answers from a text on. */
async function startUnanswered(args: readonly string[], text: string): Promise<{ wire: Wire; ran: Running }> {
  const wire = await openWire(stage.env['TEMPORAL_ADDRESS'] ?? '');
  wires.push(wire);
  wire.loseAnswersFrom(text);
  return { wire, ran: stage.start([...args, '--json'], { env: { TEMPORAL_ADDRESS: wire.address } }) };
}

test('a message that was sent and not answered for is sent again with its id', async () => {
  const id = stage.id('sent');
  await stage.begin(id, 'echo');
  const session = stage.session(id);
  await untilPhase(session, 'idle');
  const { wire, ran } = await startUnanswered(['send', id, "it's said once"], 'said once');
  await until(session, ({ phase, messages }) => phase === 'idle' && messages === 2);
  wire.cut();

  const ended = await ran.ended;
  expect(ended).toMatchObject({ code: 5, stdout: '' });
  const { code, message, details, next } = errorOf(ended);
  const messageId = (await session.transcript()).items[0]?.id;
  expect({ code, details }).toEqual({ code: 'SERVER_UNAVAILABLE', details: { sessionId: id, messageId } });
  expect(message).toContain(`Send it again with the id ${messageId}: the session takes an id once`);
  const words = wordsOf(next);
  expect(words).toEqual(['send', id, "it's said once", '--json', '--id', messageId]);
  expect(await stage.perdure(...words)).toMatchObject({ code: 0 });
  await stage.json('send', id, 'the next');
  await until(session, ({ phase, messages }) => phase === 'idle' && messages === 4);
}, 180_000);

test.each([
  ['of a random id is started once', false],
  ['that may exist takes its message once', true],
])(
  'a session %s',
  async (_, mayExist) => {
    const tenant = stage.id('tenant');
    const flags = mayExist ? ['--use-existing', '--id', stage.id('named')] : [];
    const list = async (): Promise<unknown[]> =>
      jsonLines((await stage.perdure('ls', '--tenant', tenant, '--json')).stdout).map(({ id }) => id);
    const said = `started ${tenant}`;
    const args = ['start', 'echo', said, '--context', JSON.stringify({ tenant }), ...flags];
    const { wire, ran } = await startUnanswered(args, said);
    await expect.poll(async () => (await list()).length).toBe(1);
    const [id] = (await list()) as string[];
    const session = stage.session(id ?? '');
    await until(session, ({ phase, messages }) => phase === 'idle' && messages === 2);
    wire.cut();

    const ended = await ran.ended;
    expect(ended).toMatchObject({ code: 5, stdout: '' });
    const { code, message, details, next } = errorOf(ended);
    const messageId = (await session.transcript()).items[0]?.id ?? '';
    expect({ code, details }).toEqual({ code: 'SERVER_UNAVAILABLE', details: { sessionId: id, messageId } });
    expect(message).toContain(`It may have happened all the same. Repeat it with the id ${id}`);
    const ids = mayExist ? ['--message-id', messageId] : ['--id', id];
    expect(wordsOf(next)).toEqual([...args, '--json', ...ids]);
    const again = await stage.perdure(...wordsOf(next));
    if (!mayExist) {
      expect(again.code).toBe(4);
      expect(errorOf(again)).toMatchObject({ code: 'SESSION_EXISTS' });
    } else expect(JSON.parse(again.stdout)).toMatchObject({ sessionId: id, existing: true });
    expect(await list()).toEqual([id]);
    await session.send('the next');
    await until(session, ({ phase, messages }) => phase === 'idle' && messages === 4);
  },
  180_000,
);

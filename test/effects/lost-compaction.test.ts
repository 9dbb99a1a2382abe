/** Faults in the middle of a compaction: it is charged as perhaps billed, done again, and nothing is lost or said twice. */
import { expect, test } from 'vitest';
import { SIGNAL } from '../../src/contract/names.ts';
import { SUMMARY_REQUEST } from '../../src/contract/view.ts';
import type { Session } from '../../src/index.ts';
import type { Fault, Script } from '../../src/testing/index.ts';
import { windowed } from '../support/window-agents.ts';
import { openWorld, type World } from '../support/world.ts';

const TEXTS = [...Array(6).keys()].map((n) => `page ${n} `.padEnd(800, `${n} `));

/** The first request for a summary meets a fault. */
const strikes =
  (fault: Fault): Script =>
  ({ lastUserText, repeat }) =>
    lastUserText !== SUMMARY_REQUEST ? { text: 'Noted.' } : repeat === 0 ? fault : { text: 'They count.' };

async function open(fault: Fault): Promise<{ world: World; session: Session; begun: () => Promise<void> }> {
  const world = await openWorld(strikes(fault), {
    agents: [windowed],
    module: new URL('../support/window-agents.ts', import.meta.url),
  });
  const session = await world.begin('windowed');
  // No worker is there yet to answer an update.
  const handle = world.client.workflow.getHandle(session.id);
  for (const text of TEXTS) await handle.signal(SIGNAL.send, { text });
  const begun = async (): Promise<void> =>
    world.model.waitFor((requests) =>
      requests.some(({ request }) => request.lastUserText === SUMMARY_REQUEST),
    );
  return { world, session, begun };
}

/** Every message was taken once. Returns how many summaries there are, and how many requests were charged as lost. */
async function whole(world: World, session: Session): Promise<{ summaries: number; lost: number }> {
  const view = await world.until(session, 'idle', 'waiting');
  expect(view).toMatchObject({ phase: 'idle', wait: null, lastText: 'Noted.' });
  const state = await world.check(session);
  const said = state.transcript.filter(({ role, summary }) => role === 'user' && summary === undefined);
  expect(said.flatMap(({ blocks }) => blocks.map((block) => block.kind === 'text' && block.text))).toEqual([
    'Please.',
    ...TEXTS,
  ]);
  const summaries = state.transcript.filter(({ summary }) => summary !== undefined);
  expect(view.budget.reserved).toEqual({ usd: 0, tokens: 0 });
  return { summaries: summaries.length, lost: view.budget.spent.lostReplies };
}

test('a worker that is killed while it compacts: charged once, done again', async () => {
  const { world, session, begun } = await open({ fault: 'hang' });
  const worker = await world.startWorkerProcess();
  await begun();
  await worker.crash();
  await world.startWorkerProcess();
  expect(await whole(world, session)).toEqual({ summaries: 1, lost: 1 });
});

test('a worker that freezes while it compacts, and wakes when another one has done it', async () => {
  const { world, session, begun } = await open({ fault: 'hang' });
  const worker = await world.startWorkerProcess();
  await begun();
  worker.freeze();
  await world.startWorkerProcess();
  await world.until(session, 'idle', 'waiting');
  worker.wake();
  expect(await whole(world, session)).toEqual({ summaries: 1, lost: 1 });
});

test('a summary that is lost on its way: charged once, done again', async () => {
  const { world, session } = await open({ fault: 'cut' });
  await world.startWorkerProcess();
  expect(await whole(world, session)).toEqual({ summaries: 1, lost: 1 });
});

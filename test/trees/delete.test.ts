import { expect, test } from 'vitest';
import { agentTool, type Session, TemporalSaver } from '../../src/index.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { agent, ask, hold, once, scripted } from '../support/tree.ts';

/** A root, an agent below it, and one below that, which waits for an approval. */
async function openTree(): Promise<{ stage: Stage; saver: TemporalSaver; root: Session; ids: string[] }> {
  const stage = await openStage(
    scripted({
      lead: once([{ name: 'middle', args: { task: 'Go.' } }]),
      middle: once([{ name: 'leaf', args: { task: 'One.' } }]),
      leaf: once([{ name: 'hold', args: {} }]),
    }),
  );
  const middle = agent(stage, 'middle', { leaf: agentTool(agent(stage, 'leaf', { hold })) });
  await stage.startWorker([agent(stage, 'lead', { middle: agentTool(middle) })]);
  const root = await ask(stage, { mode: 'task' });
  await expect.poll(async () => (await root.tree()).open.length).toBe(1);
  const ids = (await root.tree()).nodes.map(({ sessionId }) => sessionId);
  return { stage, saver: new TemporalSaver(stage.client), root, ids };
}

async function left(stage: Stage, ids: readonly string[]): Promise<string[]> {
  const there = await Promise.all(
    ids.map((id) =>
      stage.client.workflow
        .getHandle(id)
        .describe()
        .then(() => [id])
        .catch(() => []),
    ),
  );
  return there.flat();
}

test('a session with open sub-agents is not deleted, and the error names them and what to do', async () => {
  const { stage, saver, root, ids } = await openTree();
  const [, middle, leaf] = ids as [string, string, string];
  await expect(saver.delete(root.id)).rejects.toMatchObject({
    code: 'SESSION_BUSY',
    message: expect.stringContaining(
      `is running with open sub-agents: ${middle}, ${leaf}. Cancel it first, or delete it with { end: true }`,
    ),
    details: { open: [middle, leaf], next: { action: 'cancel', sessionId: root.id } },
  });
  // A root that was ended from outside leaves them at work.
  await stage.client.workflow.getHandle(root.id).terminate('by hand');
  await expect(saver.delete(root.id)).rejects.toMatchObject({
    code: 'SESSION_BUSY',
    message: expect.stringContaining(`has ended and left open sub-agents: ${middle}, ${leaf}. Cancel these`),
    details: { next: { action: 'cancel', sessionId: middle } },
  });
  expect(await left(stage, ids)).toEqual(ids);

  await saver.delete(root.id, { end: true });
  expect(await left(stage, ids)).toEqual([]);
});

test('a session is deleted with all that has ended below it, and with nothing else', async () => {
  const { stage, saver, root, ids } = await openTree();
  const stranger = await stage.sessions.start('lead', { id: `${root.id}/middle.0123456789`, mode: 'task' });
  await root.cancel({ reason: 'enough' });
  await root.result();
  await saver.delete(root.id);
  expect(await left(stage, [...ids, stranger.id])).toEqual([stranger.id]);
});

test('a deleted tree that works is ended as a whole', async () => {
  const { stage, saver, root, ids } = await openTree();
  await saver.delete(root.id, { end: true });
  expect(await left(stage, ids)).toEqual([]);
  await expect(untilPhase(root, 'idle')).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
});

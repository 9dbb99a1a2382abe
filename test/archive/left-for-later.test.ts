/** Runs that the exporter cannot read, or not in this round: they are not forgotten. */
import type { PayloadCodec } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, onTestFinished, test, vi } from 'vitest';
import { archiveStatus } from '../../src/archive/door.ts';
import { createArchiveActivities } from '../../src/archive/index.ts';
import type { ArchiveRound } from '../../src/contract/archive.ts';
import type { Session } from '../../src/index.ts';
import { startSqlite } from './homes.ts';
import { expectAllArchived, useArchiveServer } from './support.ts';

const server = useArchiveServer(startSqlite);

/** A codec without the key of one text. */
const keyless = (text: string): PayloadCodec => ({
  encode: async (payloads) => payloads,
  decode: async (payloads) => {
    if (payloads.some(({ data }) => Buffer.from(data ?? []).includes(text))) throw new Error('no such key');
    return payloads;
  },
});

test('a closed run that a worker could not read is stored by the next worker that can', async () => {
  const stage = await server.open();
  // What comes before the part that cannot be read is stored meanwhile, of one of them.
  const early = await stage.talk('sealed');
  const late = await stage.talk('open', 'sealed');
  for (const session of [early, late]) {
    await session.cancel();
    await session.result();
  }
  const stop = await stage.startExporter({ dataConverter: { payloadCodecs: [keyless('sealed')] } });
  await expect
    .poll(async () => (await archiveStatus(stage.client, stage.name)).unreadable, { timeout: 60_000 })
    .toHaveLength(2);
  expect(await stage.archive.list(early.id, null, 10)).toEqual([]);
  expect((await stage.archive.list(late.id, null, 10)).length).toBeGreaterThan(0);
  await stop();
  await stage.startExporter();
  for (const { id } of [early, late]) await expectAllArchived(stage, id, await stage.untilArchived(id));
  await expect
    .poll(async () => (await archiveStatus(stage.client, stage.name)).unreadable, { timeout: 60_000 })
    .toEqual([]);
});

test('rounds that end before the look does go on at its place, with what has closed first', async () => {
  const stage = await server.open();
  const all: Session[] = [];
  for (const word of ['one', 'two', 'three', 'four']) all.push(await stage.talk(word));
  const closed = all.slice(0, 2);
  for (const session of closed) {
    await session.cancel();
    await session.result();
  }
  const seen = async (state: string): Promise<string[]> => {
    const ids: string[] = [];
    for await (const { workflowId } of stage.client.workflow.list({ query: `ExecutionStatus ${state}` }))
      if (all.some(({ id }) => id === workflowId)) ids.push(workflowId);
    return ids.sort();
  };
  await expect.poll(() => seen("!= 'Running'")).toEqual(closed.map(({ id }) => id).sort());
  await expect.poll(() => seen("= 'Running'")).toHaveLength(2);

  const { archiveRound } = createArchiveActivities({ path: stage.home.place, roundMs: 0 });
  const order: string[] = [];
  let upTo: string | null = null;
  while (upTo === null) {
    const environment = new MockActivityEnvironment(undefined, { client: stage.client });
    const round: ArchiveRound = await environment.run(archiveRound, { archiveId: null });
    expect(round.unreadable).toEqual([]);
    ({ upTo } = round);
    const before = order.length;
    for (const { id } of all)
      if (!order.includes(id) && (await stage.archive.list(id, null, 1)).length > 0) order.push(id);
    expect(order.length - before).toBeLessThan(2);
  }
  expect(order).toHaveLength(4);
  expect(order.slice(0, 2).sort()).toEqual(closed.map(({ id }) => id).sort());
  for (const { id } of all) await expectAllArchived(stage, id, await stage.present(id));
  expect((await stage.archive.status()).upTo).toBe(upTo);
});

test('a round that follows one which stored something does not look again at once', async () => {
  const stage = await server.open();
  await stage.talk('one');
  const looks: number[] = [];
  const list = stage.client.workflow.list.bind(stage.client.workflow);
  const listed = vi.spyOn(stage.client.workflow, 'list').mockImplementation((options) => {
    if (options?.query?.includes("ExecutionStatus = 'Running'") === true) looks.push(performance.now());
    return list(options);
  });
  onTestFinished(() => listed.mockRestore());
  const { archiveRound } = createArchiveActivities({ path: stage.home.place });
  const environment = (): MockActivityEnvironment =>
    new MockActivityEnvironment(undefined, { client: stage.client });
  const first: ArchiveRound = await environment().run(archiveRound, { archiveId: null });
  expect(first.stored).toBeGreaterThan(0);
  expect(looks).toHaveLength(1);

  const second = environment();
  const round = second.run(archiveRound, { archiveId: first.archiveId });
  // Its first look is over; it is ended as it rests.
  await expect.poll(async () => (await stage.archive.status()).upTo).not.toBeNull();
  second.cancel();
  await round;
  const [one = 0, two = 0] = looks;
  expect(two - one).toBeGreaterThan(1_000);
});

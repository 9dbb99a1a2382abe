/** A store of values on a disk without room: a real file system of two megabytes, which needs the right to mount one. */
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import { DirectoryValues, defineAgent, defineTool, Sessions } from '../../src/index.ts';
import { scriptedTurns } from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, untilPhase } from '../support/stage.ts';

const LARGE = 'A large report. '.repeat(20_000);

const folder = mkdtempSync(join(tmpdir(), 'full-'));
const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', folder]).status === 0;
if (mounted) execFileSync('umount', [folder]);

/** A disk for one test. */
function openDisk() {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', folder]);
  onTestFinished(() => void execFileSync('umount', ['--lazy', folder]));
  const filler = join(folder, 'filler');
  return {
    values: new DirectoryValues(join(folder, 'values')),
    fill: () => {
      const file = openSync(filler, 'w');
      try {
        for (;;) writeSync(file, Buffer.alloc(4_096));
      } catch (error) {
        expect(error).toMatchObject({ code: 'ENOSPC' });
      } finally {
        closeSync(file);
      }
    },
    giveRoom: () => rmSync(filler),
    /** Bytes of all files of the store. */
    sizes: () =>
      readdirSync(join(folder, 'values'), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => statSync(join(entry.parentPath, entry.name)).size),
  };
}

async function openPlace(timeout: '30s' | '100ms') {
  const disk = openDisk();
  const stage = await openStage(
    scriptedTurns([{ toolCalls: [{ name: 'order', args: {} }] }, { text: 'done' }, { text: 'seen' }]),
  );
  const counted = { ran: 0 };
  let seeRefusal: (error: unknown) => void = () => undefined;
  const refused = new Promise<unknown>((resolve) => (seeRefusal = resolve));
  const { put } = DirectoryValues.prototype;
  disk.values.put = (...args) =>
    put.apply(disk.values, args).catch((error: unknown) => {
      seeRefusal(error);
      throw error;
    });
  const order = defineTool({
    inputSchema: z.object({}),
    timeout,
    execute: async () => {
      counted.ran++;
      return LARGE;
    },
  });
  const agent = defineAgent({
    name: 'full',
    model: stage.provider('m'),
    instructions: 'Go.',
    tools: { order },
  });
  await stage.startWorker([agent], { values: disk.values });
  const sessions = new Sessions(stage.client, { taskQueue: stage.taskQueue, values: disk.values });
  const start = () => sessions.start('full', { id: stage.id(), message: 'go' });
  return { ...disk, counted, refused, start };
}

test.skipIf(!mounted)(
  'a store without room: the call waits, and its result is stored whole once there is room',
  async () => {
    const place = await openPlace('30s');
    place.fill();
    const session = await place.start();
    expect(await place.refused).toMatchObject({ code: 'ENOSPC' });
    expect(place.sizes()).toEqual([]);
    place.giveRoom();
    await untilPhase(session, 'idle');
    const [call] = (await session.calls()).items;
    expect(place.counted.ran).toBe(1);
    expect(Buffer.from((await session.value(call?.result?.value ?? '')).bytes).toString()).toBe(LARGE);
  },
);

test.skipIf(!mounted)(
  'a store that stays without room: the result is shortened and says why, a file is not sent, and nothing is half stored',
  async () => {
    const place = await openPlace('100ms');
    place.fill();
    const session = await place.start();
    await untilPhase(session, 'idle');
    const [call] = (await session.calls()).items;
    expect(place.counted.ran).toBe(1);
    expect(call).toMatchObject({
      status: { kind: 'completed' },
      result: { content: expect.stringMatching(/the store of values failed: ENOSPC: no space left.*\]$/) },
    });
    expect(call?.result).not.toHaveProperty('value');
    const data = Buffer.alloc(100_000);
    const parts = [{ type: 'file', data, mediaType: 'application/pdf' }] as const;
    expect(await rejection(session.send({ parts }))).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringContaining('ENOSPC'),
    });
    expect(place.sizes()).toEqual([]);
    expect((await session.state()).messages).toBe(4);
    place.giveRoom();
    await session.send({ parts });
    await untilPhase(session, 'idle');
    expect(place.sizes().filter((size) => size > data.length)).toHaveLength(1);
  },
);

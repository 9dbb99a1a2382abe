/** A worker or the server is killed while a thread rolls over: every put that was answered is there, once and in order. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { segmentId, THREAD_LIMIT, threadWorkflowId } from '../../src/contract/thread.ts';
import { type Checkpoint, isPerdureError, PerdurePlugin, TemporalSaver } from '../../src/index.ts';
import { type ServerHandle, startServer } from '../../src/server/index.ts';
import { runsUpTo } from '../../src/temporal/executions.ts';
import { readEvents } from '../../src/temporal/index.ts';
import { createHarness, type Harness, type WorkerProcess } from '../../src/testing/index.ts';
import type { RolloverPlace } from './support/rollover-interceptors.ts';

/** Each is kept in the thread itself. */
const PADDING = 'x'.repeat(30_000);
/** Puts of each of the two writers: together they are more than a run takes before it seals. */
const EACH = 12;

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

let server: ServerHandle;
let dir: string;
/** The workflows with the interceptors: one bundle for all workers. */
let bundle: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdure-rollover-'));
  bundle = join(dir, 'bundle.js');
  const { code } = await bundleWorkflowCode({
    workflowsPath: file('../../src/workflows/index.ts'),
    workflowInterceptorModules: [file('./support/rollover-interceptors.ts')],
    plugins: [new PerdurePlugin({ agents: [] })],
    logger: new DefaultLogger('WARN'),
  });
  await writeFile(bundle, code);
  server = await startServer({ dir });
});
afterAll(async () => {
  await server.stop();
  await rm(dir, { recursive: true, force: true });
});

/** A put, sent again under its id for as long as nobody answers. */
async function put(saver: TemporalSaver, thread: string, writer: number, n: number): Promise<Checkpoint> {
  for (;;) {
    try {
      return await saver.put(thread, { writer, n, padding: PADDING }, { id: `${writer}-${n}` });
    } catch (error) {
      if (!isPerdureError(error, 'NO_WORKER') && !isPerdureError(error, 'SERVER_UNAVAILABLE')) throw error;
    }
  }
}

/** What of a run's history tells where in its rollover it is. */
async function progress(
  { client }: Harness,
  workflowId: string,
  runId: string,
): Promise<{ tasks: number; initiated: boolean; started: boolean; continued: boolean }> {
  const seen = { tasks: 0, initiated: false, started: false, continued: false };
  for await (const event of readEvents(client, { workflowId, runId })) {
    if (event.workflowTaskCompletedEventAttributes) seen.tasks += 1;
    seen.initiated ||= Boolean(event.startChildWorkflowExecutionInitiatedEventAttributes);
    seen.started ||= Boolean(event.childWorkflowExecutionStartedEventAttributes);
    seen.continued ||= Boolean(event.workflowExecutionContinuedAsNewEventAttributes);
  }
  return seen;
}

/** The fault lands inside the rollover: the history ends where the place says. */
async function isAt(harness: Harness, thread: string, place: RolloverPlace): Promise<void> {
  const id = threadWorkflowId(thread);
  const { runId } = await harness.client.workflow.getHandle(id).describe();
  const here = await progress(harness, id, runId);
  if (place === 'begun') {
    expect(here).toEqual({ tasks: 0, initiated: false, started: false, continued: false });
    expect(await runsUpTo(harness.client, id, runId)).toHaveLength(2);
  } else {
    const sealed = place === 'going on';
    expect(here).toMatchObject({ initiated: sealed, started: sealed, continued: false });
    expect(here.tasks).toBeGreaterThan(0);
  }
}

/** Lets a worker go on from a place, and whenever it comes there again. */
async function letGo(worker: WorkerProcess, place: RolloverPlace): Promise<void> {
  try {
    for (;;) {
      worker.release(place);
      await worker.reached(place);
    }
  } catch {
    // The worker has ended.
  }
}

describe.each(['sealing', 'going on', 'begun'] as const)('a thread that rolls over (%s)', (place) => {
  test.each(['worker', 'server'] as const)('while its %s is killed loses nothing', async (victim) => {
    const harness = await createHarness({
      script: [],
      module: new URL('./support/rollover-agents.ts', import.meta.url),
      env: { ROLLOVER_BUNDLE: bundle },
      server,
    });
    onTestFinished(() => harness.stop());
    const { client, taskQueue } = harness;
    const thread = `rollover-${taskQueue}`;
    const worker = await harness.startWorkerProcess({ breakAt: [place] });

    const stored: Checkpoint[][] = [[], []];
    const writing = stored.map(async (own, writer) => {
      const saver = new TemporalSaver(client, { taskQueue });
      for (let n = 0; n < EACH; n++) own.push(await put(saver, thread, writer, n));
    });
    expect(2 * EACH * PADDING.length).toBeGreaterThan(THREAD_LIMIT.sealBytes);
    await worker.reached(place);
    await isAt(harness, thread, place);
    const answered = stored.flat();
    if (victim === 'worker') {
      await worker.crash();
      await isAt(harness, thread, place);
      await harness.startWorkerProcess();
    } else {
      await server.kill();
      await server.restart();
      await isAt(harness, thread, place);
      void letGo(worker, place);
    }
    await Promise.all(writing);

    const fresh = new TemporalSaver(client, { taskQueue });
    const list = await fresh.list(thread, { limit: 100 });
    const byId = new Map(list.map((one) => [one.id, one]));
    expect(list).toHaveLength(2 * EACH);
    expect(byId.size).toBe(2 * EACH);
    for (const one of answered) expect(byId.get(one.id)).toEqual(one);
    for (const [writer, own] of stored.entries())
      expect(list.filter(({ state }) => state['writer'] === writer)).toEqual(own.toReversed());
    // It goes on, and knows what it has sealed.
    for (const one of answered.slice(0, 2)) {
      const { writer, n } = one.state as { writer: number; n: number };
      expect(await put(fresh, thread, writer, n)).toEqual(one);
    }
    const after = await fresh.put(thread, { n: 'after' }, { parentId: '0-0' });
    expect(await new TemporalSaver(client, { taskQueue }).get(thread)).toEqual(after);

    // Sealed once: each run but the last has one segment, which stays open.
    const { runId } = await client.workflow.getHandle(threadWorkflowId(thread)).describe();
    const [last, ...sealed] = (await runsUpTo(client, threadWorkflowId(thread), runId)).reverse();
    expect(last).toBe(runId);
    expect(sealed.length).toBeGreaterThan(0);
    for (const run of sealed) {
      const { status } = await client.workflow.getHandle(segmentId(run)).describe();
      expect(status.name).toBe('RUNNING');
    }
  });
});

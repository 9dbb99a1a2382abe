/** A stage for archives: a server of its own, for an exporter looks through all sessions of a namespace. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Client, Connection } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import { NativeConnection, type Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest';
import * as z from 'zod';
import type { CheckpointArchive } from '../../src/archive/door.ts';
import { auditSession, createArchiveWorker, openArchive } from '../../src/archive/door.ts';
import type { Checkpoint } from '../../src/index.ts';
import {
  createWorker,
  defineAgent,
  defineTool,
  type Session,
  Sessions,
  TemporalSaver,
} from '../../src/index.ts';
import { startServer } from '../../src/server/index.ts';
import { startScriptedModel } from '../../src/testing/index.ts';
import { untilPhase } from '../support/stage.ts';
import { HOMES, type Home, type Place } from './homes.ts';

/** What the tests of archives work with. */
export interface ArchiveStage {
  readonly client: Client;
  readonly sessions: Sessions;
  readonly saver: TemporalSaver;
  /** A new archive of this test, and an exporter's name for it. */
  readonly home: Place;
  readonly name: string;
  readonly archive: CheckpointArchive;
  /** Starts a session and waits for the end of its first turn. */
  talk(...messages: string[]): Promise<Session>;
  /** Starts the worker of the exporter; returns what stops it. */
  startExporter(more?: { dataConverter?: DataConverter }): Promise<() => Promise<void>>;
  /** All checkpoints of a session that the server has, newest first. */
  present(sessionId: string): Promise<Checkpoint[]>;
  /** Waits until the archive has what the server has, and returns it. */
  untilArchived(sessionId: string): Promise<Checkpoint[]>;
}

/** The server, its worker and its model, for a file of tests. */
export interface ArchiveServer {
  open(): Promise<ArchiveStage>;
  close(): Promise<void>;
}

/** Runs tests with an archive in each kind of database; one that this machine lacks is skipped with the reason. */
export function inEachHome(
  title: string,
  tests: (server: Pick<ArchiveServer, 'open'>, locked: string) => void,
): void {
  for (const { name, locked, missing, start } of HOMES)
    describe.skipIf(missing !== null)(
      `${title}in ${name}${missing === null ? '' : `, skipped because ${missing}`}`,
      () => {
        tests(useArchiveServer(start), locked);
      },
    );
}

/** A server with archives in one kind of database: started before the tests around it, and stopped after them. */
export function useArchiveServer(start: () => Promise<Home>): Pick<ArchiveServer, 'open'> {
  let home: Home;
  let server: ArchiveServer;
  beforeAll(async () => {
    home = await start();
    server = await startArchiveServer(home);
  });
  afterAll(async () => {
    await server?.close();
    await home?.stop();
  });
  return { open: () => server.open() };
}

/** Fails unless an audit finds these checkpoints in the archive as the history says them, and nothing else. */
export async function expectAllArchived(
  { client, archive }: ArchiveStage,
  sessionId: string,
  stored: readonly Checkpoint[],
): Promise<void> {
  expect(await auditSession(client, archive, sessionId)).toEqual({
    sessionId,
    runs: 1,
    equal: stored.length,
    pending: 0,
    difference: null,
  });
}

/** Starts them; on a server that is given, they leave it running. */
export async function startArchiveServer(
  home: Home,
  given?: { address: string; namespace: string },
): Promise<ArchiveServer> {
  const server = given ?? (await startServer({ inMemory: true }));
  const model = await startScriptedModel({
    script: ({ lastUserText, stepInTurn }) =>
      stepInTurn === 0
        ? { toolCalls: [{ name: 'write', args: { text: lastUserText } }] }
        : { text: `wrote ${lastUserText}` },
  });
  const provider = createOpenAICompatible({ name: 'scripted', baseURL: model.url, includeUsage: true });
  const { address, namespace } = server;
  const connection = await Connection.connect({ address });
  const native = await NativeConnection.connect({ address });
  const client = new Client({ connection, namespace });
  const taskQueue = 'archived';
  const writer = defineAgent({
    name: 'writer',
    model: provider('scripted'),
    instructions: 'Write.',
    tools: {
      write: defineTool({
        inputSchema: z.object({ text: z.string() }),
        execute: ({ text }) => ({ written: text }),
      }),
    },
  });
  const stops: (() => Promise<void>)[] = [];
  const worker = await createWorker({
    agents: [writer],
    connection: native,
    namespace,
    taskQueue,
    journal: false,
  });
  const running = worker.run();
  const sessions = new Sessions(client, { taskQueue });
  const saver = new TemporalSaver(client, { taskQueue });
  let stages = 0;

  const open = async (): Promise<ArchiveStage> => {
    const place = await home.newPlace();
    onTestFinished(() => place.close());
    const name = `archive-${stages++}`;
    const archive = openArchive(place.place);
    onTestFinished(() => archive.close());
    const present = (id: string): Promise<Checkpoint[]> => saver.list(id, { limit: 1_000 });
    return {
      client,
      sessions,
      saver,
      home: place,
      name,
      archive,
      present,
      talk: async (first = 'hello', ...more) => {
        const session = await sessions.start('writer', { message: first });
        await untilPhase(session, 'idle');
        for (const message of more) {
          await session.send(message);
          await untilPhase(session, 'idle');
        }
        return session;
      },
      startExporter: async (more = {}) => {
        const exporter = await createArchiveWorker({
          ...more,
          connection: native,
          namespace,
          path: place.place,
          name,
        });
        const stop = stopper(exporter);
        stops.push(stop);
        onTestFinished(stop);
        return stop;
      },
      untilArchived: async (id) => {
        const wanted = await present(id);
        await expect
          .poll(async () => (await archive.list(id, null, 1_000)).length, { timeout: 90_000, interval: 100 })
          .toBeGreaterThanOrEqual(wanted.length);
        const stored = await archive.list(id, null, 1_000);
        expect(stored).toEqual(wanted);
        return stored;
      },
    };
  };
  return {
    open,
    close: async () => {
      worker.shutdown();
      await running;
      for (const stop of stops) await stop();
      await connection.close();
      await native.close();
      await model.stop();
      if ('stop' in server) await server.stop();
    },
  };
}

function stopper(worker: Worker): () => Promise<void> {
  const running = worker.run();
  return async () => {
    if (worker.getState() === 'RUNNING') worker.shutdown();
    await running;
  };
}

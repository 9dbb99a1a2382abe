/** A dev server whose SQLite answers nothing any more. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { expect, onTestFinished, test } from 'vitest';
import { cacheDir } from '../../src/server/cache-dir.ts';
import { startServer, TEMPORAL_CLI_VERSION } from '../../src/server/index.ts';
import { scratch } from './support/scripts.ts';

/** As an earlier version of this package has built it, with the CLI's own SQLite. */
const BREAKING = join(cacheDir(), `temporal-${TEMPORAL_CLI_VERSION}`, 'temporal');
const CLIENTS = 40;
const namespace = 'default';

async function connect(address: string): Promise<Connection> {
  const connection = await Connection.connect({ address });
  onTestFinished(() => connection.close());
  return connection;
}

test.skipIf(!existsSync(BREAKING))(
  'a server whose database has broken over cancelled requests is started again, and has lost nothing',
  { timeout: 150_000 },
  async () => {
    const told: string[] = [];
    const server = await startServer({
      dir: join(await scratch(), 'data'),
      binary: BREAKING,
      onProgress: (line) => told.push(line),
    });
    onTestFinished(() => server.stop());
    const { pid } = server;
    let ended = false;
    void server.ended().then(() => {
      ended = true;
    });
    const start = (connection: Connection, workflowId: string): Promise<unknown> =>
      connection.workflowService.startWorkflowExecution({
        namespace,
        workflowId,
        requestId: workflowId,
        workflowType: { name: 'note' },
        taskQueue: { name: 'nobody' },
      });
    const first = await connect(server.address);
    await start(first, 'kept');

    const until = Date.now() + 90_000;
    const cancelling = async (client: number): Promise<void> => {
      const connection = await connect(server.address);
      const { workflowService: service } = connection;
      for (let n = 0; told.length === 0 && Date.now() < until; n++) {
        const cancelled = new AbortController();
        const timer = setTimeout(() => cancelled.abort(), Math.random() * 25);
        const name = {
          workflowType: { name: 'note' },
          taskQueue: { name: 'nobody' },
          requestId: `${client}-${n}`,
        };
        const request = (): Promise<unknown> =>
          client % 3 === 0
            ? service.listWorkflowExecutions({ namespace, pageSize: 1_000, query: "WorkflowType='note'" })
            : client % 3 === 1
              ? start(connection, `note-${client}-${n}`)
              : service.signalWithStartWorkflowExecution({
                  ...name,
                  namespace,
                  workflowId: `signalled-${n % 50}`,
                  signalName: 'written',
                });
        await connection.withAbortSignal(cancelled.signal, request).catch(() => undefined);
        clearTimeout(timer);
      }
    };
    await Promise.all([...Array(CLIENTS).keys()].map(cancelling));
    await expect.poll(() => told.at(-1), { timeout: 60_000 }).toBe('Temporal answers again');

    expect(told[0]).toMatch(/"interrupted \(9\)": starting it again, nothing is lost/);
    expect(server.pid).not.toBe(pid);
    expect(ended).toBe(false);
    const again = await connect(server.address);
    const { workflowExecutionInfo: kept } = await again.workflowService.describeWorkflowExecution({
      namespace,
      execution: { workflowId: 'kept' },
    });
    expect(kept?.type?.name).toBe('note');
  },
);

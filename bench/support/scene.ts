/** A server with two workers in this process, ours and the floor's, and runs on either. */
import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { TASK_TIMEOUT } from '../../src/contract/limits.ts';
import { createWorker, type Session, Sessions } from '../../src/index.ts';
import { floorActivities } from '../floor/activities.ts';
import { bundleFloor } from '../floor/bundle.ts';
import { benchAgent } from './agent.ts';
import { type BenchTool, type Job, jobText } from './job.ts';
import { until } from './until.ts';

/** Names of equal length, because they are in the events, whose bytes are compared. */
export const QUEUE = { ours: 'bench-a', floor: 'bench-b' } as const;

/** A finished run. */
export interface Run {
  workflowId: string;
  /** Milliseconds of each turn, from one model request to the next. */
  turnMs: number[];
}

/** Runs sessions and floor workflows one at a time. */
export interface Scene {
  readonly address: string;
  readonly client: Client;
  readonly sessions: Sessions;
  /** The session ends with its last answer. */
  runOurs(tool: BenchTool, turns: number, pool?: string): Promise<Run>;
  runFloor(turns: number): Promise<Run>;
  /** These stay open after their last answer. */
  holdOurs(turns: number): Promise<Session>;
  holdFloor(turns: number): Promise<string>;
  /** The number of model requests by runs that are in progress. */
  requests(): number;
  close(): Promise<void>;
}

/** Opens a scene on a running server. */
export async function openScene(address: string): Promise<Scene> {
  const connection = await Connection.connect({ address });
  const client = new Client({ connection });
  const sessions = new Sessions(client, { taskQueue: QUEUE.ours });
  const native = await NativeConnection.connect({ address });
  const jobs = new Map<string, Job>();
  const requests = new Map<string, number[]>();
  const onRequest = ({ id }: Job, turn: number): void => {
    const times = requests.get(id);
    // A repeated request does not begin a new turn.
    if (times !== undefined) times[turn] ??= performance.now();
  };
  const workers = [
    await createWorker({ agents: [benchAgent(onRequest)], address, taskQueue: QUEUE.ours }),
    await Worker.create({
      connection: native,
      taskQueue: QUEUE.floor,
      // As `createWorker` sets them. Polls, build id and connection are the SDK's defaults: better choices are part of
      // our library.
      stickyQueueScheduleToStartTimeout: '1s',
      maxHeartbeatThrottleInterval: 250,
      defaultHeartbeatThrottleInterval: 250,
      shutdownGraceTime: '10s',
      workflowBundle: await bundleFloor(),
      activities: floorActivities((id) => jobs.get(id) ?? { id, turns: 0, tool: 'read' }, onRequest),
    }),
  ];
  const running = workers.map((worker) => worker.run());

  const newJob = (tool: BenchTool, turns: number): Job => {
    const job = { id: randomUUID(), turns, tool };
    jobs.set(job.id, job);
    requests.set(job.id, []);
    return job;
  };
  const ended = ({ id }: Job): Run => {
    const times = (requests.get(id) ?? []).slice(1);
    requests.delete(id);
    return { workflowId: id, turnMs: times.slice(1).map((time, i) => time - (times[i] ?? time)) };
  };
  const startOurs = async (job: Job, mode: 'task' | 'chat', pool?: string): Promise<Session> =>
    sessions.start('bench', {
      id: job.id,
      message: jobText(job),
      mode,
      ...(pool === undefined ? {} : { pool }),
    });
  const startFloor = (job: Job, hold: boolean) =>
    client.workflow.start('floor', {
      workflowId: job.id,
      taskQueue: QUEUE.floor,
      args: [{ text: jobText(job), hold }],
      workflowTaskTimeout: TASK_TIMEOUT,
    });
  const lastTurn = async (job: Job): Promise<void> => {
    // The last request has come, so its answer is under way. A query is answered after it.
    await until(() => (requests.get(job.id)?.length ?? 0) > job.turns + 1);
  };
  return {
    address,
    client,
    sessions,
    runOurs: async (tool, turns, pool) => {
      const job = newJob(tool, turns);
      await (await startOurs(job, 'task', pool)).result();
      return ended(job);
    },
    runFloor: async (turns) => {
      const job = newJob('read', turns);
      await (await startFloor(job, false)).result();
      return ended(job);
    },
    holdOurs: async (turns) => {
      const job = newJob('read', turns);
      const session = await startOurs(job, 'chat');
      await lastTurn(job);
      return session;
    },
    holdFloor: async (turns) => {
      const job = newJob('read', turns);
      await startFloor(job, true);
      await lastTurn(job);
      return job.id;
    },
    requests: () => [...requests.values()].reduce((sum, times) => sum + Object.keys(times).length, 0),
    close: async () => {
      for (const worker of workers) worker.shutdown();
      await Promise.all(running);
      await native.close();
      await connection.close();
    },
  };
}

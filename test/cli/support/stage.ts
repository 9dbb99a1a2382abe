/** A stage for a file of tests: a scripted model, one `perdure worker` process, and `perdure` on their task queue. */
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { inject } from 'vitest';
import { type Session, Sessions, TemporalSaver } from '../../../src/index.ts';
import { type Reply, type Script, startScriptedModel } from '../../../src/testing/index.ts';
import { type Ran, type Running, type RunOptions, run, start } from './perdure.ts';

/** The agents' module that the worker runs. */
export const AGENTS: string = fileURLToPath(new URL('agents.ts', import.meta.url));

/** What the tests of a file work with. */
export interface CliStage {
  readonly env: Readonly<Record<string, string>>;
  readonly taskQueue: string;
  perdure(...args: string[]): Promise<Ran>;
  /** `perdure --json …`, which must succeed; its document. */
  json<T = Record<string, unknown>>(...args: string[]): Promise<T>;
  start(args: readonly string[], options?: RunOptions): Running;
  /** Starts a session as `perdure start` does, without a process: for tests of what comes after. */
  begin(id: string, agent: string, text?: string): Promise<void>;
  readonly client: Client;
  /** The library's own handle, to wait with. */
  session(id: string): Session;
  readonly saver: TemporalSaver;
  /** An id that no other test has. */
  id(name: string): string;
  /** Ends a session's workflow from outside, as an operator can. */
  terminate(id: string): Promise<void>;
  /** Starts a workflow that is no session; returns its id. */
  startOther(): Promise<string>;
  /** Starts the worker and waits until it is ready. */
  startWorker(): Promise<Running>;
  close(): Promise<void>;
}

/** Opens a stage, on a task queue of its own. */
export async function openStage(): Promise<CliStage> {
  const { address, namespace } = inject('temporal');
  const taskQueue = `cli-${randomBytes(6).toString('hex')}`;
  const model = await startScriptedModel({ script });
  const connection = await Connection.connect({ address });
  const client = new Client({ connection, namespace });
  const sessions = new Sessions(client, { taskQueue });
  const saver = new TemporalSaver(client, { taskQueue });
  const env = {
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
    PERDURE_TASK_QUEUE: taskQueue,
    OPENAI_BASE_URL: model.url,
  };
  let ids = 0;
  let worker: Running | undefined;
  const perdure = (...args: string[]): Promise<Ran> => run(args, { env });
  return {
    env,
    taskQueue,
    perdure,
    json: async <T>(...args: string[]): Promise<T> => {
      const { code, stdout, stderr } = await perdure('--json', ...args);
      if (code !== 0) throw new Error(`perdure ${args.join(' ')} ended with ${code}:\n${stderr}`);
      return JSON.parse(stdout) as T;
    },
    begin: async (id, agent, text) => {
      const message = text === undefined ? {} : { message: { text, by: 'ada' } };
      await sessions.start(agent, { id, ...message });
    },
    start: (args, options) => start(args, { ...options, env: { ...env, ...options?.env } }),
    client,
    session: (id) => sessions.get(id),
    saver,
    id: (name) => `${name}-${taskQueue}-${ids++}`,
    terminate: async (id) => void (await client.workflow.getHandle(id).terminate('by a test')),
    startOther: async () =>
      (await client.workflow.start('other', { taskQueue, workflowId: `other-${taskQueue}` })).workflowId,
    startWorker: async () => {
      worker = start(['worker', AGENTS, '--json'], { env });
      await worker.line((line) => line.includes('"ready"'));
      return worker;
    },
    close: async () => {
      worker?.child.kill('SIGTERM');
      await worker?.ended;
      await connection.close();
      await model.stop();
    },
  };
}

const PLAN = { steps: [{ id: 's1', title: 'Look at the order', postconditions: [], status: 'in_progress' }] };

/** The model: what a person says decides what it does, so that one model serves all tests. */
const script: Script = ({ lastUserText, stepInTurn }) => {
  const [verb = '', ...words] = lastUserText.split(' ');
  if (stepInTurn > 0) return { text: `done: ${lastUserText}` };
  const refunds = (charges: string[]): Reply => ({
    text: 'I refund it.',
    toolCalls: charges.map((charge) => {
      const [chargeId, cents] = charge.split(':');
      return { name: 'refund', args: { chargeId, cents: Number(cents) } };
    }),
  });
  switch (verb) {
    case 'refund':
      return refunds(words);
    case 'order':
      return { toolCalls: [{ name: 'order', args: { id: words[0] } }] };
    case 'delegate':
      return { toolCalls: [{ name: 'support', args: { task: words.join(' ') } }] };
    case 'later':
      return { toolCalls: [{ name: 'later', args: { task: words.join(' ') } }] };
    case 'pay':
      return { toolCalls: [{ name: 'pay', args: { invoice: words[0] } }] };
    case 'release':
      return { toolCalls: [{ name: 'release', args: { payment: words[0] } }] };
    case 'announce':
      return { toolCalls: [{ name: 'announce', args: { text: words.join(' ') } }] };
    case 'ask':
      return {
        toolCalls: [
          { name: 'ask_person', args: { question: words.join(' '), options: ['window', 'aisle'] } },
        ],
      };
    case 'trip':
      return { toolCalls: [{ name: 'ask_trip', args: { question: words.join(' ') } }] };
    case 'sleep':
      return { toolCalls: [{ name: 'sleep_until', args: { seconds: 3_600, reason: 'lunch' } }] };
    case 'plan':
      return { toolCalls: [{ name: 'update_plan', args: PLAN }] };
    case 'hang':
      return { fault: 'hang', afterChunks: 1, reply: { text: 'this will not come to its end' } };
    case 'escape':
      return { text: 'before \u001b[2J after' };
    default:
      return { text: `you said: ${lastUserText}` };
  }
};

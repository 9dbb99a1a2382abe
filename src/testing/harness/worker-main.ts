/**
 * A worker as a process of its own, started by a harness with one argument: a {@link WorkerConfig} as JSON. It
 * ends with its parent, and with SIGTERM after the calls in flight.
 */
import {
  DefaultLogger,
  type NativeConnectionOptions,
  Runtime,
  type WorkerInterceptors,
} from '@temporalio/worker';
import type { DefinedAgent } from '../../agent/index.ts';
import type { SessionActivities, ToolInput, VerifyInput } from '../../contract/activities.ts';
import { PerdureError } from '../../contract/errors.ts';
import { createWorker, openConnection, type SessionWorkerOptions } from '../../worker/index.ts';
import { breakpoint, endBreakpoints, installBreakpoints, type WorkerNews } from './breakpoints.ts';
import { scriptedAgents } from './scripted-agents.ts';

/** What a worker process is told. */
export interface WorkerConfig {
  readonly connection: NativeConnectionOptions;
  readonly namespace: string;
  readonly taskQueue: string;
  /** URL of the module with the agents. */
  readonly module: string;
  /** The scripted model; without it the agents' own models are asked. */
  readonly modelUrl?: string;
  readonly breakAt: readonly string[];
}

const config = JSON.parse(process.argv[2] ?? '{}') as WorkerConfig;
Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] });
installBreakpoints(config.breakAt);
process.once('disconnect', () => process.exit(0));
// Its parent may have ended while it loaded.
if (!process.connected) process.exit(0);

const module = (await import(config.module)) as Record<string, unknown>;
const agents = exportedAgents(module);
const options = (module['workerOptions'] ?? {}) as Partial<SessionWorkerOptions>;
const connection = await openConnection(config.connection);
const worker = await createWorker({
  // As of `perdure worker`: what never ends is ended by force.
  shutdownForceTime: '20s',
  ...options,
  agents: config.modelUrl === undefined ? agents : scriptedAgents(agents, config.modelUrl),
  connection,
  namespace: config.namespace,
  taskQueue: config.taskQueue,
  interceptors: withBreakpoints(options.interceptors),
});
process.once('SIGTERM', () => {
  worker.shutdown();
  // Nobody may come to release what is held: past the time in which calls may end, it goes on.
  setTimeout(endBreakpoints, worker.options.shutdownGraceTimeMs);
});
const running = worker.run();
process.send?.({ kind: 'ready' } satisfies WorkerNews);
await running;
await connection.close();
process.exit(0);

/** Every agent that a module exports, alone or in a list. */
function exportedAgents(exports: Record<string, unknown>): DefinedAgent[] {
  const isAgent = (value: unknown): value is DefinedAgent =>
    typeof value === 'object' && value !== null && (value as { perdure?: unknown }).perdure === 'agent';
  const found = new Set(Object.values(exports).flat(1).filter(isAgent));
  if (found.size > 0) return [...found];
  throw new PerdureError(
    'INVALID_ARGUMENT',
    `module: ${config.module} exports no agent: write export const support = defineAgent({ … })`,
  );
}

/** Breakpoints around each tool, so that a worker can be held there without a change of the tool. */
function withBreakpoints(own: WorkerInterceptors | undefined): WorkerInterceptors {
  return {
    ...own,
    activity: [
      ...(own?.activity ?? []),
      ({ info }) => ({
        inbound: {
          execute: async (input, next) => {
            const type = info.activityType as keyof SessionActivities;
            const { tool } = (input.args[0] ?? {}) as Partial<ToolInput | VerifyInput>;
            const name = tool !== undefined && type === 'verify' ? `verify ${tool}` : (tool ?? type);
            await breakpoint(`before ${name}`);
            const result: unknown = await next(input);
            await breakpoint(`after ${name}`, JSON.stringify(result));
            return result;
          },
        },
      }),
    ],
  };
}

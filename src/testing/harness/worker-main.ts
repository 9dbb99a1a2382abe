/**
 * A worker process. A harness starts it with one argument: a {@link WorkerConfig} as JSON. It ends with its parent, and
 * at SIGTERM after the calls in flight.
 */

import {
  DefaultLogger,
  type NativeConnectionOptions,
  Runtime,
  type WorkerInterceptors,
} from '@temporalio/worker';
import { execute } from '../../activities/tool-execution.ts';
import type { DefinedAgent, DefinedTool } from '../../agent/index.ts';
import type { ToolInput } from '../../contract/activities.ts';
import { PerdureError } from '../../contract/errors.ts';
import type { ModelInput } from '../../contract/model-call.ts';
import { activityKind } from '../../contract/names.ts';
import { createWorker, openConnection, type SessionWorkerOptions } from '../../worker/index.ts';
import { breakpoint, endBreakpoints, installBreakpoints, type WorkerNews } from './breakpoints.ts';
import { scriptedAgents } from './scripted-agents.ts';

/** The configuration of a worker process. */
export interface WorkerConfig {
  readonly connection: NativeConnectionOptions;
  readonly namespace: string;
  readonly taskQueue: string;
  /** URL of the module with the agents. */
  readonly module: string;
  /** URL of the scripted model. Without it the agents use their own models. */
  readonly modelUrl?: string;
  readonly breakAt: readonly string[];
}

const config = JSON.parse(process.argv[2] ?? '{}') as WorkerConfig;
Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] });
installBreakpoints(config.breakAt);
process.once('disconnect', () => process.exit(0));
// The parent may have ended while this process was loading.
if (!process.connected) process.exit(0);

const module = (await import(config.module)) as Record<string, unknown>;
const agents = exportedAgents(module);
const options = (module['workerOptions'] ?? {}) as Partial<SessionWorkerOptions>;
const connection = await openConnection(config.connection);
const worker = await createWorker({
  // As in `perdure worker`: a call that never ends is ended by force.
  shutdownForceTime: '20s',
  ...options,
  agents: withReadBreakpoints(
    config.modelUrl === undefined ? agents : scriptedAgents(agents, config.modelUrl),
  ),
  connection,
  namespace: config.namespace,
  taskQueue: config.taskQueue,
  interceptors: withBreakpoints(options.interceptors),
});
process.once('SIGTERM', () => {
  worker.shutdown();
  // Perhaps nobody releases a held call: it continues after the grace time.
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

/** Wraps each read in breakpoints: reads run together in one activity. */
function withReadBreakpoints(defined: readonly DefinedAgent[]): DefinedAgent[] {
  return defined.map((agent) => ({
    ...agent,
    tools: Object.fromEntries(
      Object.entries(agent.tools).map(([name, tool]) => [
        name,
        tool.effect === 'read' ? withReadBreakpoint(name, tool) : tool,
      ]),
    ),
  }));
}

function withReadBreakpoint(name: string, tool: DefinedTool): DefinedTool {
  return {
    ...tool,
    execute: async (input, context) => {
      await breakpoint(`before ${name}`);
      const output = await execute(tool, input, context);
      await breakpoint(`after ${name}`, JSON.stringify({ kind: 'output', output }));
      return output;
    },
  };
}

/** Wraps each activity in breakpoints, so that a worker can be held there without a change to the tool. */
function withBreakpoints(own: WorkerInterceptors | undefined): WorkerInterceptors {
  return {
    ...own,
    activity: [
      ...(own?.activity ?? []),
      ({ info }) => ({
        inbound: {
          execute: async (input, next) => {
            const { tool, compact } = (input.args[0] ?? {}) as Partial<ToolInput & ModelInput>;
            const kind = activityKind(info.activityType) ?? info.activityType;
            const type = compact === undefined ? kind : 'compact';
            const looks = type === 'verify' || type === 'attach';
            const name = tool !== undefined && looks ? `${type} ${tool}` : (tool ?? type);
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

import { hostname } from 'node:os';
import type { temporal } from '@temporalio/proto';
import type { InjectedSinks } from '@temporalio/worker';
import {
  NativeConnection,
  type NativeConnectionOptions,
  Worker,
  type WorkerOptions,
} from '@temporalio/worker';
import { createActivities, TranscriptMemory } from '../activities/index.ts';
import { type AgentRuntime, type DefinedAgent, type ModelRegistry, resolveAgent } from '../agent/index.ts';
import { PerdureError } from '../contract/errors.ts';
import type { Message, Position } from '../contract/messages.ts';
import { DEFAULT_TASK_QUEUE, SEARCH_ATTRIBUTE } from '../contract/names.ts';
import { modelsFromEnvironment } from './models.ts';
import { workflowBundle } from './workflow-bundle.ts';

/** What a worker of sessions needs. Everything that Temporal's `WorkerOptions` takes may be given beside it. */
export interface SessionWorkerOptions
  extends Omit<WorkerOptions, 'taskQueue' | 'workflowsPath' | 'activities'> {
  /** The agents whose sessions this worker runs. */
  agents: readonly DefinedAgent[];
  /** Resolves models that agents name by text: the AI SDK's provider registry. Default: the environment's endpoint. */
  models?: ModelRegistry;
  /** Where Temporal is, when no `connection` is given. */
  address?: string | NativeConnectionOptions;
  /** Default: `perdure`. */
  taskQueue?: string;
  /** Activities of your own beside the sessions'. */
  activities?: object;
  /** The most memory for transcripts at hand, in bytes. Default: 256 MB. */
  memoryBytes?: number;
}

const DEFAULTS = { memoryBytes: 256_000_000 } as const;

/**
 * Creates a Temporal worker that runs agent sessions. Start it with `worker.run()`; it ends in-flight calls
 * for ten seconds at a shutdown, and what it cannot end is recovered by the next worker.
 *
 * @throws PerdureError `INVALID_DEFINITION` when an agent cannot be resolved or two have one name.
 */
export async function createWorker(options: SessionWorkerOptions): Promise<Worker> {
  const {
    agents,
    models,
    address,
    taskQueue = DEFAULT_TASK_QUEUE,
    activities,
    memoryBytes,
    ...rest
  } = options;
  const runtimes = await resolveAgents(agents, models ?? modelsFromEnvironment());
  const connection =
    rest.connection ??
    (await NativeConnection.connect(typeof address === 'string' ? { address } : (address ?? {})));
  const namespace = rest.namespace ?? 'default';
  const memory = new TranscriptMemory(memoryBytes ?? DEFAULTS.memoryBytes);
  const searchAttributes = await knownSearchAttributes(connection, namespace);
  return Worker.create({
    identity: `${process.pid}@${hostname()}`,
    // After a worker's death its cached workflows go to another within this time.
    stickyQueueScheduleToStartTimeout: '1s',
    // Live text and the news of a cancellation travel with heartbeats.
    maxHeartbeatThrottleInterval: 250,
    defaultHeartbeatThrottleInterval: 250,
    shutdownGraceTime: '10s',
    ...(rest.workflowBundle === undefined ? { workflowBundle: await workflowBundle() } : {}),
    ...rest,
    connection,
    namespace,
    taskQueue,
    activities: { ...activities, ...createActivities({ agents: runtimes, memory, searchAttributes }) },
    sinks: { ...rest.sinks, ...memorySinks(memory) },
  });
}

async function resolveAgents(
  agents: readonly DefinedAgent[],
  models: ModelRegistry | undefined,
): Promise<Map<string, AgentRuntime>> {
  const runtimes = new Map<string, AgentRuntime>();
  for (const agent of agents) {
    if (runtimes.has(agent.name)) {
      throw new PerdureError('INVALID_DEFINITION', `agents: two agents are named ${agent.name}: rename one`);
    }
    runtimes.set(agent.name, await resolveAgent(agent, models));
  }
  return runtimes;
}

function memorySinks(memory: TranscriptMemory): InjectedSinks<{
  perdure: { remember(piece: { from: Position; to: Position; messages: Message[] }): void };
}> {
  return {
    perdure: {
      remember: {
        fn: (info, piece) => memory.remember(info.runId, piece),
        // A replayed workflow fills the memory of the worker that it moved to.
        callDuringReplay: true,
      },
    },
  };
}

/** Our search attributes that the server knows: to set one that it does not would stop a session for ever. */
async function knownSearchAttributes(connection: NativeConnection, namespace: string): Promise<string[]> {
  const ours: string[] = Object.values(SEARCH_ATTRIBUTE);
  let known: temporal.api.operatorservice.v1.IListSearchAttributesResponse;
  try {
    known = await connection.operatorService.listSearchAttributes({ namespace });
  } catch {
    // Not every server lets a worker read them; sessions work without.
    return [];
  }
  return ours.filter((name) => known.customAttributes?.[name] !== undefined);
}

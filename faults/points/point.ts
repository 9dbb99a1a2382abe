/** A fault point is one small file that strikes a run, and proves that it did. */
import type { Crew } from '../crew.ts';
import type { Stage } from '../stage.ts';
import type { StackName, Step, ToolKind } from '../story.ts';

/** A fault, and the steps of a turn at which it strikes. */
export interface FaultPoint {
  readonly name: string;
  /** For the docs: what happens, in one sentence. */
  readonly about: string;
  /** The steps of a quick run. */
  readonly steps: readonly Step[];
  /** Steps that only a soak goes through. */
  readonly soakSteps?: readonly Step[];
  /** The kinds that it can strike at a step. Default: all; in recovery, those that can be verified. */
  readonly kinds?: (step: Step) => readonly ToolKind[];
  /** A worker that was given up may run on: with a service that ignores keys, a second effect in the gap is allowed. */
  readonly overtakes?: boolean;
  /** Kinds whose calls may end as failed, because the fault is the tool's own answer. */
  readonly fails?: readonly ToolKind[];
  /**
   * Model requests of a session that may be lost or withdrawn while their worker lives on. They are charged, but the
   * endpoint has no record of them. Default: 0.
   */
  readonly unseen?: number;
  /** The server that it needs. Default: any. */
  readonly needs?: StackName;
  /** The fault does not involve requests to the service: a quick run uses one of the two services in turn. */
  readonly anyService?: boolean;
  /** Why it cannot run on this machine, or `null`. */
  readonly missing?: () => string | null;
  /** The id of the key that clients encrypt with. Default: none. */
  readonly key?: string;
  /** Sessions make only one call, whatever the story says. */
  readonly oneTurn?: boolean;
  /**
   * Starts workers and sessions, makes the fault happen, and calls `stage.strike` with evidence that exists only if it
   * did. Resolves when sessions can continue by themselves. The result runs once they are at rest, for example to wake
   * a frozen worker.
   */
  readonly inject: (stage: Stage) => Promise<(() => Promise<void>) | undefined>;
}

/** The database of a server that has one of its own. */
export function databaseOf({ lane }: Stage): NonNullable<Stage['lane']['server']['database']> {
  const { database } = lane.server;
  if (database === undefined) throw new Error('this server has no database of its own');
  return database;
}

/** The error of a fault that came too late for its step, on a busy machine. Its story runs once more. */
export const MISSED = 'the fault missed its step';

/** Whether the process with this id is gone. */
export function gone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

/** Kills the workers that hold the calls, or all workers, and proves that they are gone. */
export async function kill(worker: Crew, who: 'holders' | 'all' = 'holders'): Promise<string> {
  const pids = await (who === 'all' ? worker.crash() : worker.crashHolders());
  for (const pid of pids) if (!gone(pid)) throw new Error(`worker ${pid} is still there`);
  return `${pids.length === 1 ? 'worker' : 'workers'} ${pids.join(', ')} ${pids.length === 1 ? 'is' : 'are'} gone`;
}

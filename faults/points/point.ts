/** What a fault point is: one small file that says what it does to a run, and shows that it did. */
import type { Crew } from '../crew.ts';
import type { Stage } from '../stage.ts';
import type { StackName, Step, ToolKind } from '../story.ts';

/** A fault, and the steps of a turn at which it strikes. */
export interface FaultPoint {
  readonly name: string;
  /** For the docs: what happens, in one sentence. */
  readonly about: string;
  /** The steps of a quick run come first. */
  readonly steps: readonly Step[];
  /** Steps that only a soak goes through. */
  readonly soakSteps?: readonly Step[];
  /** The kinds that it can strike at a step; default all, in recovery those that can be verified. */
  readonly kinds?: (step: Step) => readonly ToolKind[];
  /** A worker that was given up may run on: with a service that ignores keys, the gap shows. */
  readonly overtakes?: boolean;
  /** Kinds whose calls may end as failed, for the fault is the tool's own answer. */
  readonly fails?: readonly ToolKind[];
  /**
   * Requests of a session to the model that may be lost on their way, or be taken back, under a worker that lives on:
   * they are charged, and the endpoint has no record of them. Default none.
   */
  readonly unseen?: number;
  /** The server that it needs; default any. */
  readonly needs?: StackName;
  /** It is not about requests to the service: a quick run tells it with one of the two in turn. */
  readonly anyService?: boolean;
  /** Why it cannot be told on this machine, or `null`. */
  readonly missing?: () => string | null;
  /** The id of the key that clients encrypt with; default none. */
  readonly key?: string;
  /** Sessions make one call, whatever the story says. */
  readonly oneTurn?: boolean;
  /**
   * Starts workers and sessions, lets the fault happen, and says so by `stage.strike` with evidence of something
   * that could only be seen if it did. Returns when sessions can go on by themselves,
   * with what is still to be done once they are at rest: a frozen worker wakes.
   */
  readonly inject: (stage: Stage) => Promise<(() => Promise<void>) | undefined>;
}

/** The database of a server that has one of its own. */
export function databaseOf({ lane }: Stage): NonNullable<Stage['lane']['server']['database']> {
  const { database } = lane.server;
  if (database === undefined) throw new Error('this server has no database of its own');
  return database;
}

/** Says in an error that a fault came too late for its step, on a busy machine: its story is told once more. */
export const MISSED = 'the fault missed its step';

/** Whether there is no process of an id any more. */
export function gone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

/** Kills the workers that have the calls, or every one, and shows that they are gone. */
export async function kill(worker: Crew, who: 'holders' | 'all' = 'holders'): Promise<string> {
  const pids = await (who === 'all' ? worker.crash() : worker.crashHolders());
  for (const pid of pids) if (!gone(pid)) throw new Error(`worker ${pid} is still there`);
  return `${pids.length === 1 ? 'worker' : 'workers'} ${pids.join(', ')} ${pids.length === 1 ? 'is' : 'are'} gone`;
}

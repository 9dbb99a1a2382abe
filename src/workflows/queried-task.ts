import { allHandlersFinished, workflowInfo } from '@temporalio/workflow';
import { ASK_AGAIN } from '../contract/failure.ts';
import type { Command, Input, Moment } from '../session/events.ts';
import { onDirectQuery } from './sdk-internals.ts';

/** Events between what two tasks have written: the end of the first, and the schedule and start of the second. */
const TASK_ENDS = 1;
const TASK_BEGINS = 2;

/** What has come with a task; `applied` is there for an update. */
interface Arrived {
  readonly input: Input;
  readonly applied?: unknown;
}

/**
 * Notices that a query has put the session out of step with its history.
 *
 * Temporal may hand a worker a query with a history that ends in a task that another worker has taken and loses. The
 * SDK lets the session go on as if that task were its own, and keeps what it did for the task that it is given when
 * the other has timed out. What comes in between is applied after it, and in a replay with it or before it: where that
 * makes other commands, the session could never be loaded again.
 *
 * Nobody is told of this. But then the history has other events than the session's own steps account for; so after
 * a query without a task, they are counted at the next step. A wrong suspicion costs a task, which is given again.
 */
export class QueriedTask {
  #queried = false;
  /** The start of the task of the last step. */
  #start = 0;
  /** The last event that this task is to write; `null` where that is not known. */
  #end: number | null = null;
  /** Whether it was the first task that was not replayed. */
  #first = false;
  #replayed = true;
  /** The commands that it has issued. */
  #issued = 0;

  constructor() {
    onDirectQuery(() => {
      // The session rests, and there may be no next step for long. A failed query lets it leave the cache, and the
      // next one finds a task that has ended in a replay.
      if (this.#first && this.#end !== null && this.#issued === 0) throw new Error(ASK_AGAIN);
      this.#queried = true;
    });
  }

  /** Whether the last step's task may have been another worker's, as a next step finds it. */
  mayBeLost(now: Moment, arrived: readonly Arrived[]): boolean {
    if (!this.#queried || this.#end === null || now.historyEvents === this.#start) return false;
    const came = arrived.reduce((sum, entry) => sum + eventsBefore(entry), 0);
    return now.historyEvents !== this.#end + came + TASK_BEGINS;
  }

  /** Notes a step that was taken: what it has applied, and what it makes its task write. */
  note(now: Moment, commands: readonly Command[], upserts: number): void {
    const replayed = workflowInfo().unsafe.isReplaying;
    if (now.historyEvents !== this.#start) {
      this.#queried = false;
      this.#start = now.historyEvents;
      this.#end = now.historyEvents + TASK_ENDS;
      this.#first = this.#replayed;
      this.#issued = 0;
    }
    this.#replayed = replayed;
    this.#issued += commands.length;
    // An update is written when it is answered, which may be later.
    const isKnown = !replayed && allHandlersFinished();
    this.#end = isKnown && this.#end !== null ? this.#end + commands.length + upserts : null;
  }
}

/** The events by which an input is in the history before its task. */
function eventsBefore({ input, applied }: Arrived): number {
  if (applied !== undefined) return 0;
  // An activity has two: its start and its end.
  return input.type === 'outcome' && input.outcome.kind !== 'timer' ? 2 : 1;
}

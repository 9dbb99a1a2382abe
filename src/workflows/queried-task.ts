import { allHandlersFinished, workflowInfo } from '@temporalio/workflow';
import { ASK_AGAIN } from '../contract/failure.ts';
import type { Command, Input, Moment } from '../session/events.ts';
import { onDirectQuery } from './sdk-internals.ts';

/** The events around what a task writes: its own completion, then the schedule and the start of the next task. */
const TASK_ENDS = 1;
const TASK_BEGINS = 2;

/** An input that came with a task. An update has `applied`. */
interface Arrived {
  readonly input: Input;
  readonly applied?: unknown;
}

/**
 * Notices that a query has put the session out of step with its history.
 *
 * Temporal may send a worker a query whose history ends in a task that another worker has taken, and later loses. The
 * SDK runs the session as if that task were its own, and keeps the commands for the task that it gets after the other
 * task has timed out. It applies an input that comes in between after that step. A replay applies the input with that
 * step or before it. If that leads to other commands, the session can never be loaded again.
 *
 * The SDK gives no sign of this. But the history then has events that the session's own steps do not account for. So
 * after a query without a task, the next step counts the events. A false suspicion costs one task, which the server
 * repeats.
 */
export class QueriedTask {
  #queried = false;
  /** The start of the task of the last step. */
  #start = 0;
  /** The last event that the task of the last step will write; `null` when it is not known. */
  #end: number | null = null;
  /** Whether that task was the first one that was not replayed. */
  #first = false;
  #replayed = true;
  /** How many commands that task has issued. */
  #issued = 0;

  constructor() {
    onDirectQuery(() => {
      // The session rests, and its next step may be far away. A failed query evicts the session from the cache. The
      // next query loads it again, with a replay of a task that has ended.
      if (this.#first && this.#end !== null && this.#issued === 0) throw new Error(ASK_AGAIN);
      this.#queried = true;
    });
  }

  /** Whether the last step may have belonged to another worker's task. */
  mayBeLost(now: Moment, arrived: readonly Arrived[]): boolean {
    if (!this.#queried || this.#end === null || now.historyEvents === this.#start) return false;
    const came = arrived.reduce((sum, entry) => sum + eventsBefore(entry), 0);
    return now.historyEvents !== this.#end + came + TASK_BEGINS;
  }

  /** Notes a step: its commands and upserts are what its task will write. */
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
    // An update is written to the history when it completes, which may be later.
    const isKnown = !replayed && allHandlersFinished();
    this.#end = isKnown && this.#end !== null ? this.#end + commands.length + upserts : null;
  }
}

/** How many events the history has for an input, before the input's task. */
function eventsBefore({ input, applied }: Arrived): number {
  if (applied !== undefined) return 0;
  // An activity has two events: its start and its end.
  return input.type === 'outcome' && input.outcome.kind !== 'timer' ? 2 : 1;
}

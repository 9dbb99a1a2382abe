/** Deletes sessions, with their sub-agents and what they have stored outside their histories. */
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { PerdureError } from '../contract/errors.ts';
import { WORKFLOW } from '../contract/names.ts';
import type { NextStep } from '../contract/next-step.ts';
import type { SessionInput } from '../contract/session-input.ts';
import type { SessionState } from '../contract/state.ts';
import type { ContentRef } from '../contract/thread.ts';
import type { ValueStore } from '../contract/values.ts';
import { deleteRun, type Execution, findExecution, reading, untilGone } from '../temporal/executions.ts';
import { readStartInput } from '../temporal/index.ts';
import { deletePieces } from '../temporal/past.ts';
import { usable, Values } from '../values/index.ts';
import { findRuns } from './runs.ts';
import type { SessionCheckpoints } from './session-checkpoints.ts';
import { findBelow } from './sub-agents.ts';

/** Deletes sessions. An interrupted deletion can be repeated. */
export class SessionDeletion {
  readonly #client: Client;
  readonly #sessions: Pick<SessionCheckpoints, 'latest'>;
  readonly #values: ValueStore | undefined;

  /** @param values - the workers' store of values, to release those of the session. */
  constructor(client: Client, sessions: Pick<SessionCheckpoints, 'latest'>, values: ValueStore | undefined) {
    this.#client = client;
    this.#sessions = sessions;
    this.#values = values;
  }

  /**
   * Deletes all runs of a session and of the sub-agents below it.
   *
   * @throws PerdureError `SESSION_BUSY` when one of them runs and `end` is not set
   */
  async delete(session: Execution, end: boolean): Promise<void> {
    await reading(session.workflowId, async () => {
      // The session is ended first, so that it starts no more sub-agents.
      if (end) await this.#end(session);
      const below = await this.#below(session);
      const open = below.filter(({ running }) => running);
      if (end) for (const one of open.toReversed()) await this.#end(one);
      else if (session.running || open.length > 0) throw busy(session, open);
      // The deepest first, so that after an interruption the deletion of the session can be repeated.
      for (const one of [...below, session]) await this.#deleteOne(one, end);
    });
  }

  async #deleteOne(session: Execution, end: boolean): Promise<void> {
    const { workflowId } = session;
    // Pieces that the last run stored are found by name. An unreadable start must not prevent the deletion.
    const input = await readStartInput(this.#client, workflowId).catch(() => null);
    const { carried } = (input ?? {}) as Partial<SessionInput>;
    for (
      let present: Execution | null = session;
      present !== null;
      present = await findExecution(this.#client, workflowId)
    ) {
      if (!end && present.running) throw busy(present, []);
      await this.#end(present);
      const { runId: last } = present;
      const runs = await findRuns(this.#client, workflowId, WORKFLOW.session, [last]);
      await this.#deleteRuns(
        workflowId,
        runs.filter((runId) => runId !== last),
      );
      // The last run goes last: while it is there, an interrupted deletion can be repeated.
      await this.deleteContent(workflowId, carried?.past?.newest);
      await this.#deleteRuns(workflowId, [last]);
    }
    // A call that was in flight may have stored another piece or value.
    await this.deleteContent(workflowId);
  }

  async #deleteRuns(workflowId: string, runs: readonly string[]): Promise<void> {
    for (const runId of runs) await deleteRun(this.#client, workflowId, runId);
    for (const runId of runs) await untilGone(this.#client, workflowId, runId);
  }

  /** Deletes what a session has outside its runs: its pieces and values. Retention removes the runs and leaves these. */
  async deleteContent(sessionId: string, newest?: ContentRef): Promise<void> {
    await deletePieces(this.#client, sessionId, newest);
    const values = this.#values && new Values(this.#values, this.#client);
    await usable(async () => values?.releaseAll(sessionId));
  }

  async #end({ workflowId, running }: Execution): Promise<void> {
    if (!running) return;
    try {
      await this.#client.workflow.getHandle(workflowId).terminate('it is being deleted');
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  }

  /** The sessions below a session. Only its state, which may be unreadable, lists sessions that it has just started. */
  async #below(session: Execution): Promise<Execution[]> {
    const latest = session.completed ? null : await this.#sessions.latest(session).catch(() => null);
    const { children = [] } = (latest?.state ?? {}) as Partial<SessionState>;
    const known = children.map(({ sessionId }) => sessionId);
    return findBelow(this.#client, session.workflowId, known);
  }
}

function busy({ workflowId, running }: Execution, open: readonly Execution[]): PerdureError {
  const ids = open.map((one) => one.workflowId).toReversed();
  const below = `open sub-agents: ${ids.join(', ')}`;
  const what = running
    ? `Session ${workflowId} is running${ids.length === 0 ? '' : ` with ${below}`}. Cancel it first`
    : `Session ${workflowId} has ended and left ${below}. Cancel these first`;
  const sessionId = running ? workflowId : (ids[0] ?? workflowId);
  return new PerdureError(
    'SESSION_BUSY',
    `${what}, or delete it with { end: true }, which does not wait for calls in flight.`,
    {
      details: {
        ...(ids.length > 0 ? { open: ids } : {}),
        next: { action: 'cancel', sessionId } satisfies NextStep,
      },
    },
  );
}

/** Finds what earlier runs have done, if somebody reset the session with Temporal's own reset. */
import type { Context } from '@temporalio/activity';
import { LRUCache } from 'lru-cache';
import type { ToolInput, ToolResult } from '../contract/activities.ts';
import type { ToolCall } from '../contract/calls.ts';
import { isPerdureError, messageOf } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import { foldHistory } from '../history/index.ts';
import { isNotFound, readPages, readStart, resetOf } from '../temporal/index.ts';
import { wholeState } from '../temporal/past.ts';

/** By run: the mutations that earlier runs dispatched. Most runs have none. */
const earlier = new LRUCache<string, ToolCall[]>({ max: 1_000 });

/**
 * What earlier runs have recorded about a mutation that this run is about to make, or `null` if it may run. For a run
 * that was not reset, this takes one small request, once.
 *
 * @throws Temporal's `ServiceError` when a history cannot be read now. The caller must not run the call then.
 */
export async function doneBefore(context: Context, input: ToolInput): Promise<ToolResult | null> {
  let calls: readonly ToolCall[];
  try {
    calls = await leftCalls(context);
  } catch (error) {
    if (!isGone(error)) throw error;
    // Before a later dispatch, verify or a person has already said *absent* about this key.
    if (input.dispatchNo > 1) return null;
    return {
      kind: 'unknown',
      reason: 'this run was reset, and the server has deleted the history of the previous run',
    };
  }
  return leftAnswer(calls, input);
}

/** What runs abandoned by a reset have recorded about a mutation, or `null` if it may run. */
export function leftAnswer(
  calls: readonly ToolCall[],
  input: Pick<ToolInput, 'tool' | 'idempotencyKey' | 'dispatchNo'>,
): ToolResult | null {
  const equal = calls.filter(
    ({ name, idempotencyKey }) => name === input.tool && idempotencyKey === input.idempotencyKey,
  );
  // A call that one run left open may have ended in the run after it.
  const done = equal.find(({ status }) => status.kind === 'completed');
  if (done !== undefined) {
    const { content = null, value } = done.result ?? {};
    return { kind: 'output', output: content, ...defined({ value }) };
  }
  for (const call of equal) {
    // A dispatch with a lower number was recorded as absent: only then does the session dispatch again.
    const open = call.dispatches.find(({ no, outcome }) => no >= input.dispatchNo && outcome !== 'absent');
    if (open !== undefined) {
      return {
        kind: 'unknown',
        reason: `dispatched as ${call.id} by a run that was reset; its outcome is unknown`,
      };
    }
  }
  return null;
}

/** The dispatched mutations of the runs that this run was reset from, and of their continuations. */
export async function leftCalls(context: Context): Promise<readonly ToolCall[]> {
  const { workflowId = '', runId = '' } = context.info.workflowExecution ?? {};
  const known = earlier.get(runId);
  if (known !== undefined) return known;
  const calls = (await wasReset(context, workflowId, runId))
    ? await dispatched(context, workflowId, runId)
    : [];
  earlier.set(runId, calls);
  return calls;
}

/** Whether the error is permanent: the history is gone, or does not fold. */
export function isGone(error: unknown): boolean {
  return isPerdureError(error, 'CHECKPOINT_CORRUPTION') || isNotFound(error);
}

/**
 * The result of an activity whose history or piece is gone, and stays gone.
 *
 * @throws any other error, so that Temporal retries when the server cannot be reached
 */
export function unavailable(error: unknown): { kind: 'unavailable'; message: string } {
  if (!isGone(error)) throw error;
  return { kind: 'unavailable', message: messageOf(error) };
}

/** Whether a reset made this run. Such a run starts with a copy of another run's history. */
async function wasReset({ client }: Context, workflowId: string, runId: string): Promise<boolean> {
  const start = await readStart(client, { workflowId, runId });
  return start?.workflowExecutionStartedEventAttributes?.originalExecutionRunId !== runId;
}

/** Reads the mutations that {@link leftCalls} returns. Resets may have followed each other. */
async function dispatched({ client }: Context, workflowId: string, runId: string): Promise<ToolCall[]> {
  const calls: ToolCall[] = [];
  const seen = new Set([runId]);
  // The loop also visits runs that are added to the set meanwhile.
  for (const run of seen) {
    const pages = readPages(client, { workflowId, runId: run });
    const noting = (async function* () {
      for await (const page of pages) {
        for (const event of page) {
          const reset = resetOf(event);
          if (reset !== null) seen.add(reset.from);
          const next = event.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
          if (next) seen.add(next);
        }
        yield page;
      }
    })();
    const { state } = await foldHistory(noting, client.options, { runId: run });
    if (run === runId) continue;
    if (state === null) continue;
    const whole = await wholeState(client, state);
    calls.push(...whole.calls.filter((call) => call.effect === 'mutate' && call.dispatches.length > 0));
  }
  return calls;
}

/** What the runs that a reset left behind have done: a person may go back with Temporal's own means. */
import type { Context } from '@temporalio/activity';
import { LRUCache } from 'lru-cache';
import type { ToolInput, ToolResult } from '../contract/activities.ts';
import type { ToolCall } from '../contract/calls.ts';
import { isPerdureError } from '../contract/errors.ts';
import { foldHistory } from '../history/index.ts';
import { isNotFound, readPages, readStart, resetOf } from '../temporal/index.ts';

/** By run: the mutations that were dispatched by the runs before it. Of most runs there are none. */
const earlier = new LRUCache<string, ToolCall[]>({ max: 1_000 });

/**
 * What an earlier run's record says of a mutation that this run is about to make, or `null` when nothing there
 * speaks against it. A run that was not reset costs one small request, once.
 *
 * @throws Temporal's `ServiceError` when a history cannot be read now.
 */
export async function doneBefore(context: Context, input: ToolInput): Promise<ToolResult | null> {
  const { workflowId = '', runId = '' } = context.info.workflowExecution ?? {};
  let calls = earlier.get(runId);
  if (calls === undefined) {
    try {
      calls = (await wasReset(context, workflowId, runId))
        ? await dispatched(context, workflowId, runId)
        : [];
    } catch (error) {
      if (!isGone(error)) throw error;
      // A later dispatch follows an *absent* that verify or a person has said of this very key.
      if (input.dispatchNo > 1) return null;
      return {
        kind: 'unknown',
        reason: 'this run was reset, and the server has deleted the history of the previous run',
      };
    }
    earlier.set(runId, calls);
  }
  for (const call of calls) {
    if (call.name !== input.tool || call.idempotencyKey !== input.idempotencyKey) continue;
    if (call.status.kind === 'completed') {
      return { kind: 'output', output: call.result?.content ?? null };
    }
    // A dispatch that is on record as absent, here or there, does not count; this one is after all of those.
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

function isGone(error: unknown): boolean {
  return isPerdureError(error, 'CHECKPOINT_CORRUPTION') || isNotFound(error);
}

/** A run that was reset begins with the history of another. */
async function wasReset({ client }: Context, workflowId: string, runId: string): Promise<boolean> {
  const start = await readStart(client, { workflowId, runId });
  return start?.workflowExecutionStartedEventAttributes?.originalExecutionRunId !== runId;
}

/** The mutations of all runs that this one was reset from, and those from others. */
async function dispatched({ client }: Context, workflowId: string, runId: string): Promise<ToolCall[]> {
  const calls: ToolCall[] = [];
  const seen = new Set([runId]);
  // A set hands over what is added to it on the way.
  for (const run of seen) {
    const pages = readPages(client, { workflowId, runId: run });
    const noting = (async function* () {
      for await (const page of pages) {
        for (const event of page) {
          const reset = resetOf(event);
          if (reset !== null) seen.add(reset.from);
        }
        yield page;
      }
    })();
    const { state } = await foldHistory(noting, client.options.loadedDataConverter, { runId: run });
    if (run === runId) continue;
    calls.push(
      ...(state?.calls ?? []).filter((call) => call.effect === 'mutate' && call.dispatches.length > 0),
    );
  }
  return calls;
}

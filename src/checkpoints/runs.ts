/** Finds the runs of a session or thread, in order. The first event of each run names the run before it. */
import type { Client } from '@temporalio/client';
import { parseInput } from '../contract/inputs.ts';
import { sessionInputSchema } from '../contract/session-input.ts';
import { firstValue, orNull, readEvents, readStart, resetOf } from '../temporal/index.ts';
import { inChunks } from '../temporal/store-content.ts';
import { quoted, unsearchable } from '../temporal/visibility.ts';

/**
 * The runs of a workflow that the server still has, newest first. Links between runs give the order; the server's
 * clock, which may step back, only orders runs without links. Visibility finds runs that no link names, but it may lag.
 *
 * @param known - runs that visibility may not show yet. The first is the newest run, to which the id now belongs
 */
export async function findRuns(
  client: Client,
  workflowId: string,
  type: string,
  known: readonly string[] = [],
): Promise<string[]> {
  const startedAt = new Map(known.map((runId, at) => [runId, Number.MAX_SAFE_INTEGER - at]));
  if (unsearchable(workflowId) === null) {
    const query = `WorkflowId = ${quoted('id', workflowId)} AND WorkflowType = '${type}'`;
    for await (const { runId, startTime } of client.workflow.list({ query }))
      if (runId !== known[0]) startedAt.set(runId, startTime.getTime());
  }
  const found = new Map<string, string | null>();
  for (let next = [...startedAt.keys()]; next.length > 0; ) {
    await inChunks(next, async (runId) => {
      const before = await runBefore(client, workflowId, runId);
      if (before !== undefined) found.set(runId, before);
    });
    next = [...new Set(found.values())].filter(
      (runId): runId is string => runId !== null && !startedAt.has(runId),
    );
    // A run that visibility does not show yet is newer than the runs that it shows.
    for (const runId of next) startedAt.set(runId, Number.MAX_SAFE_INTEGER - known.length);
  }
  return inOrder(found, (runId) => startedAt.get(runId) ?? 0);
}

/**
 * The run before a run: it was continued, reset or rewound. `null` for the first run, `undefined` when the server does
 * not have the run.
 */
export async function runBefore(
  client: Client,
  workflowId: string,
  runId: string,
): Promise<string | null | undefined> {
  const execution = { workflowId, runId };
  const started = (await orNull(readStart(client, execution)))?.workflowExecutionStartedEventAttributes;
  if (!started) return undefined;
  const { originalExecutionRunId: original, continuedExecutionRunId: continued, input } = started;
  if (original && original !== runId) return (await orNull(resetFrom(client, workflowId, runId))) ?? original;
  if (continued) return continued;
  // An unreadable input counts as no link: reading the run's checkpoints fails, but the run can still be deleted.
  const value = await firstValue(client.options, workflowId, input).catch(() => null);
  const read = parseInput(sessionInputSchema, value);
  const origin = read.ok ? read.value.origin : undefined;
  return origin?.kind === 'rewind' ? (origin.leaves ?? origin.runId) : null;
}

/** The run that this run was reset from, or `null`. A reset run's history begins with the other run's history. */
async function resetFrom(client: Client, workflowId: string, runId: string): Promise<string | null> {
  for await (const event of readEvents(client, { workflowId, runId })) {
    const reset = resetOf(event);
    if (reset?.runId === runId) return reset.from;
  }
  return null;
}

/** Sorts runs, newest first: by their links, then by the clock. */
function inOrder(before: ReadonlyMap<string, string | null>, startedAt: (runId: string) => number): string[] {
  const left = [...before.keys()].sort((a, b) => startedAt(b) - startedAt(a));
  const order: string[] = [];
  while (left.length > 0) {
    const followed = new Set(left.map((runId) => before.get(runId)));
    const at = left.findIndex((runId) => !followed.has(runId));
    order.push(...left.splice(Math.max(at, 0), 1));
  }
  return order;
}

import type { Client } from '@temporalio/client';
import type { temporal } from '@temporalio/proto';

/** One event of a Temporal history. */
export type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

/**
 * The events of one run in order, page by page, so that a long history is never in memory as a whole.
 * Works with no worker running and after the run has closed, until the namespace's retention.
 *
 * @throws Temporal's `ServiceError` when the run is not there.
 */
export async function* readEvents(
  client: Client,
  execution: { workflowId: string; runId?: string },
): AsyncGenerator<HistoryEvent> {
  let nextPageToken: Uint8Array | null | undefined;
  do {
    const page = await client.workflowService.getWorkflowExecutionHistory({
      namespace: client.options.namespace,
      execution,
      maximumPageSize: 1_000,
      ...(nextPageToken ? { nextPageToken } : {}),
    });
    yield* page.history?.events ?? [];
    nextPageToken = page.nextPageToken;
  } while (nextPageToken && nextPageToken.length > 0);
}

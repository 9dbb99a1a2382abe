import type { Client } from '@temporalio/client';
import type { temporal } from '@temporalio/proto';

type HistoryPage = temporal.api.workflowservice.v1.IGetWorkflowExecutionHistoryResponse;

/** One event of a Temporal history. */
export type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

/**
 * Events of one page, tried in this order: a page that a client cannot receive is asked for in smaller pieces.
 * Temporal's own client takes 4 MB in one answer, unless it was connected with a higher
 * `grpc.max_receive_message_length`, and what is larger it asks for again, for longer than anybody waits.
 */
const PAGE_SIZES = [1_000, 60, 8, 1] as const;
/** How long a page may take before it is asked for in smaller pieces, in milliseconds. */
const PAGE_MS = 4_000;
const GRPC = { deadlineExceeded: 4, resourceExhausted: 8 } as const;

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
  let step = 0;
  const readPage = (maximumPageSize: number): Promise<HistoryPage> =>
    client.workflowService.getWorkflowExecutionHistory({
      namespace: client.options.namespace,
      execution,
      maximumPageSize,
      ...(nextPageToken ? { nextPageToken } : {}),
    });
  do {
    let page: HistoryPage | undefined;
    while (page === undefined) {
      const size = PAGE_SIZES[step] ?? 1;
      try {
        page =
          size === 1
            ? await readPage(size)
            : await client.withDeadline(Date.now() + PAGE_MS, () => readPage(size));
      } catch (error) {
        const { code } = error as { code?: unknown };
        if (size === 1 || (code !== GRPC.resourceExhausted && code !== GRPC.deadlineExceeded)) throw error;
        step += 1;
      }
    }
    yield* page.history?.events ?? [];
    nextPageToken = page.nextPageToken;
  } while (nextPageToken && nextPageToken.length > 0);
}

import { setImmediate as turn } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import proto, { type temporal } from '@temporalio/proto';
import { GRPC } from './grpc.ts';

const { EventType } = proto.temporal.api.enums.v1;
const RESET = proto.temporal.api.enums.v1.WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW;

type HistoryPage = Pick<
  temporal.api.workflowservice.v1.IGetWorkflowExecutionHistoryResponse,
  'history' | 'nextPageToken'
>;
/** A run, and the run that it was reset from. */
interface Reset {
  runId: string;
  from: string;
}

type PageToken = Uint8Array | null | undefined;

/** One event of a Temporal history. */
export type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

/**
 * How many events a page has, tried in this order: a page that the client cannot receive is requested in smaller
 * pieces. Temporal's client accepts answers of 4 MB, unless it was connected with a higher
 * `grpc.max_receive_message_length`. It requests a larger answer again and again, for longer than anybody waits.
 */
export const PAGE_SIZES = [1_000, 60, 8, 1] as const;
/** How long a page may take before it is requested in smaller pieces, in milliseconds. */
export const PAGE_MS = 4_000;
/** The gRPC codes of a page that is too large or slow. `cancelled`: the server saw the deadline before the client. */
export const TOO_MUCH: readonly unknown[] = [GRPC.cancelled, GRPC.deadlineExceeded, GRPC.resourceExhausted];

/** The first page size when reading backwards. Such readers want only the end of a history, so pages are small. */
const BACKWARDS_STEP = 1;

/**
 * The events of one run, page by page, so that a long history is never in memory as a whole. The next page is requested
 * while one is read. Works without a worker and after the run has closed, until the namespace's retention.
 *
 * @param options - `backwards`: newest event first. `pageMs`: how long a page may take before it is requested in smaller
 * pieces. Default: {@link PAGE_MS}.
 * @throws Temporal's `ServiceError` when the run does not exist.
 */
export async function* readPages(
  client: Client,
  execution: { workflowId: string; runId?: string },
  { backwards = false, pageMs = PAGE_MS }: { backwards?: boolean; pageMs?: number } = {},
): AsyncGenerator<readonly HistoryEvent[]> {
  const service = client.workflowService;
  let step = backwards ? BACKWARDS_STEP : 0;
  const readPage = async (token: PageToken): Promise<HistoryPage> => {
    for (;;) {
      const size = PAGE_SIZES[step] ?? 1;
      const request = {
        namespace: client.options.namespace,
        execution,
        maximumPageSize: size,
        ...(token ? { nextPageToken: token } : {}),
      };
      const ask = (): Promise<HistoryPage> =>
        backwards
          ? service.getWorkflowExecutionHistoryReverse(request)
          : service.getWorkflowExecutionHistory(request);
      try {
        return size === 1 ? await ask() : await client.withDeadline(Date.now() + pageMs, ask);
      } catch (error) {
        if (size === 1 || !TOO_MUCH.includes((error as { code?: unknown }).code)) throw error;
        step += 1;
      }
    }
  };
  let next: Promise<HistoryPage> | null = readPage(undefined);
  while (next !== null) {
    const { history, nextPageToken: token }: HistoryPage = await next;
    const more: boolean = token !== null && token !== undefined && token.length > 0;
    next = more && !backwards ? readPage(token) : null;
    // The reader may stop before it awaits the next page.
    next?.catch(() => undefined);
    // A reader that never waits would keep the request from being sent.
    if (next !== null) await turn();
    yield history?.events ?? [];
    if (more) next ??= readPage(token);
  }
}

/** The event that started a run. @throws Temporal's `ServiceError` when the run does not exist. */
export async function readStart(
  client: Client,
  execution: { workflowId: string; runId?: string },
): Promise<HistoryEvent | undefined> {
  const { history } = await client.workflowService.getWorkflowExecutionHistory({
    namespace: client.options.namespace,
    execution,
    maximumPageSize: 1,
  });
  return history?.events?.[0];
}

/** The run that this run continues, from its first event; `null` if there is none. */
export function previousRun(start: HistoryEvent | null | undefined): string | null {
  return start?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId || null;
}

/** The trace of a Temporal reset in a history: the run that the reset began, and the run whose history it copied. */
export function resetOf({ workflowTaskFailedEventAttributes: failed }: HistoryEvent): Reset | null {
  if (failed?.cause !== RESET || !failed.baseRunId) return null;
  return { runId: failed.newRunId ?? '', from: failed.baseRunId };
}

/**
 * Whether an event belongs to a workflow task that may not be recorded yet. A server may show such a task (Temporal
 * does so from 1.31 on), and later give its event ids to other events.
 */
export function isUnderWay({ eventType }: HistoryEvent): boolean {
  return (
    eventType === EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED ||
    eventType === EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED
  );
}

/** The events of {@link readPages} one by one. */
export async function* readEvents(...args: Parameters<typeof readPages>): AsyncGenerator<HistoryEvent> {
  for await (const page of readPages(...args)) yield* page;
}

/** The reason for which a run was terminated, or an empty text. */
export async function endReason(
  client: Client,
  execution: { workflowId: string; runId?: string },
): Promise<string> {
  for await (const last of readEvents(client, execution, { backwards: true })) {
    return last.workflowExecutionTerminatedEventAttributes?.reason ?? '';
  }
  return '';
}

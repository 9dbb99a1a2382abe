/** Sends queries and updates to a session, and repeats those that a worker or a bad moment made fail. */
import { type Client, isGrpcDeadlineError, type WorkflowHandle } from '@temporalio/client';
import { PerdureError } from '../contract/errors.ts';
import { ASK_AGAIN } from '../contract/failure.ts';
import { defined } from '../contract/json.ts';
import type { PageInput, TooLarge } from '../contract/views.ts';
import { isContinuing, isUnprocessed, sessionError } from '../temporal/errors.ts';
import { fitting } from './read-session.ts';

/** How long an update or a query may wait for a worker, in milliseconds. */
export const ANSWER_MS = 15_000;
/** Pause before a query or an update that came at a bad moment is repeated, in milliseconds. */
const ASK_AGAIN_MS = 100;
/**
 * How long to wait for each worker that may be frozen before another is asked, in milliseconds. The last wait is
 * longer, for a worker that has a long history to read.
 */
const SILENT_MS = [3_000, 3_000];

/** The answer of a query. @throws PerdureError `NO_WORKER`, `SESSION_CLOSED`, `TOO_LARGE` */
export async function answered<T>(
  client: Client,
  handle: WorkflowHandle,
  { name, page, answerMs }: { name: string; page: PageInput | undefined; answerMs: number },
): Promise<T> {
  const ask = (): Promise<T | TooLarge> => handle.query(name, ...(page === undefined ? [] : [page]));
  const deadline = Date.now() + answerMs;
  let answer: T | TooLarge;
  try {
    answer = await client.withDeadline(deadline, () => askUntil(client, handle, deadline, ask));
  } catch (error) {
    throw sessionError(handle.workflowId, error);
  }
  return fitting(answer, name, handle.workflowId);
}

/** Repeats a query that came between an event and its workflow task, or that a frozen worker swallowed. */
async function askUntil<T>(
  client: Client,
  handle: WorkflowHandle,
  deadline: number,
  ask: () => Promise<T>,
): Promise<T> {
  for (let silences = 0; ; ) {
    const answerBy = Math.min(deadline, Date.now() + (SILENT_MS[silences] ?? ANSWER_MS));
    try {
      return await client.withDeadline(answerBy, ask);
    } catch (error) {
      if (isGrpcDeadlineError(error) && answerBy < deadline) {
        silences += 1;
        continue;
      }
      if (!(error instanceof Error) || !error.message.includes(ASK_AGAIN)) throw error;
      const { status } = await handle.describe();
      if (status.name !== 'RUNNING') {
        throw new PerdureError(
          'SESSION_CLOSED',
          `Session ${handle.workflowId} was ended from outside before it processed its last events. Read it with the checkpoint saver`,
          { cause: error },
        );
      }
      if (Date.now() > deadline) {
        throw new PerdureError(
          'NO_WORKER',
          `No worker has processed the last events of session ${handle.workflowId} yet. Try again, or start a worker: perdure worker <module>`,
          { cause: error },
        );
      }
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
    }
  }
}

/** Sends an update, and repeats it until the session has processed it. */
export function updated<T>(
  client: Client,
  handle: WorkflowHandle,
  { name, value, updateId }: { name: string; value: unknown; updateId: string | undefined },
): Promise<T> {
  const deadline = Date.now() + ANSWER_MS;
  const options = { args: [value] as [unknown], ...defined({ updateId }) };
  return client.withDeadline(deadline, async () => {
    for (;;) {
      try {
        return await handle.executeUpdate<T, [unknown]>(name, options);
      } catch (error) {
        if (!(isUnprocessed(error) || isContinuing(error)) || Date.now() > deadline) throw error;
        await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
      }
    }
  });
}

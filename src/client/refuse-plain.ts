/** Keeps plain text out of encrypted sessions. */
import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import { encryptedError } from '../temporal/errors.ts';
import { orNull, readStart } from '../temporal/index.ts';
import { isReadablePlain } from '../temporal/payloads.ts';

/** How long a session counts as not encrypted, in milliseconds. A rewind by another client can change it. */
const KNOWN_MS = 60_000;
const MOST_KNOWN = 10_000;

/** Sessions that are not encrypted, by the client that has looked. */
const plain = new WeakMap<Client, Map<string, number>>();

/**
 * Refuses a client without codecs for a session that was started with codecs: its inputs would be stored in plain text.
 * A client without codecs looks once a minute at each session that it writes to.
 *
 * @param described - the session's description, if the caller has it
 * @throws PerdureError `ENCRYPTED`. Then nothing was sent
 */
export async function refusePlain(
  client: Client,
  id: string,
  described?: Pick<WorkflowExecutionDescription, 'raw'>,
): Promise<void> {
  if (client.options.loadedDataConverter.payloadCodecs.length > 0) return;
  const known = plain.get(client) ?? new Map<string, number>();
  plain.set(client, known);
  if (performance.now() < (known.get(id) ?? 0)) return;
  const found = described ?? (await orNull(client.workflow.getHandle(id).describe()));
  const summary = found?.raw.executionConfig?.userMetadata?.summary;
  // A session that another program has started may have no summary: then its first event tells.
  const payload =
    summary ??
    (found === null
      ? null
      : (await orNull(readStart(client, { workflowId: id })))?.workflowExecutionStartedEventAttributes?.input
          ?.payloads?.[0]);
  if (payload && !isReadablePlain(client.options, payload)) throw encryptedError(id);
  if (known.size >= MOST_KNOWN) known.clear();
  known.set(id, performance.now() + KNOWN_MS);
}

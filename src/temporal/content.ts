/** Reads contents that are stored as the inputs of workflows that never run. */
import { createHash } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { PerdureError } from '../contract/errors.ts';
import { type ContentRef, contentId } from '../contract/thread.ts';
import { GRPC } from './grpc.ts';
import { firstValue } from './payloads.ts';
import { readStart } from './read-events.ts';

/** How many parts are read at the same time. */
const AT_ONCE = 4;

/** The start input of a workflow, read from its history. `null` when the server does not have the workflow. */
export async function readStartInput(client: Client, workflowId: string): Promise<unknown> {
  const started = (await orNull(readStart(client, { workflowId })))?.workflowExecutionStartedEventAttributes;
  return started ? firstValue(client.options, workflowId, started.input) : null;
}

/** A text that was stored in parts. @throws PerdureError `CHECKPOINT_CORRUPTION` when it is gone or changed */
export async function loadParts(client: Client, ref: ContentRef): Promise<string> {
  const text = (await readParts(client, ref)).join('');
  if (createHash('sha256').update(text).digest('hex') === ref.digest) return text;
  throw corruptContent(ref);
}

/** The parts of a stored content, unchecked. */
export async function readParts(client: Client, { key, parts }: ContentRef): Promise<unknown[]> {
  const found: unknown[] = [];
  for (let from = 0; from < parts; from += AT_ONCE) {
    const some = [...Array(Math.min(AT_ONCE, parts - from)).keys()].map((i) => from + i);
    found.push(...(await Promise.all(some.map((part) => readStartInput(client, contentId(key, part))))));
  }
  return found;
}

export function corruptContent({ key, parts }: ContentRef, cause?: unknown): PerdureError {
  return new PerdureError(
    'CHECKPOINT_CORRUPTION',
    `The content ${contentId(key, 0)} of a checkpoint or step is missing or corrupt`,
    { details: { key, parts }, cause },
  );
}

/** The result of a call to the server, or `null` when the server answers NOT_FOUND. */
export async function orNull<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}

export function isNotFound(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === GRPC.notFound;
}

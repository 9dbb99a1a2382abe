/** Stores large contents in parts. Each part is the input of a workflow that never runs. */
import { createHash } from 'node:crypto';
import type { Client, WorkflowStartOptions } from '@temporalio/client';
import { WORKFLOW } from '../contract/names.ts';
import { type ContentRef, contentId, THREAD_LIMIT } from '../contract/thread.ts';

/** How many parts are written at the same time. */
const AT_ONCE = 4;

/** Stores a text, or bytes, under a key. Existing parts of this key are kept. */
export async function storeParts(
  client: Client,
  {
    key,
    content,
    what,
    ...options
  }: Pick<WorkflowStartOptions, 'taskQueue' | 'startDelay' | 'workflowRunTimeout'> & {
    key: string;
    content: string | Uint8Array;
    what: string;
  },
): Promise<ContentRef> {
  const pieces: (string | Uint8Array)[] = [];
  for (let at = 0; at < content.length; at += THREAD_LIMIT.part)
    pieces.push(content.slice(at, at + THREAD_LIMIT.part));
  await inChunks([...pieces.entries()], async ([part, piece]) => {
    await client.workflow.start(WORKFLOW.segment, {
      ...options,
      workflowId: contentId(key, part),
      args: [piece],
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      staticSummary: `part ${part} of ${what}`.slice(0, 200),
    });
  });
  return { key, parts: pieces.length, digest: createHash('sha256').update(content).digest('hex') };
}

/** Runs an action for all items, a few at a time. */
export async function inChunks<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE)
    await Promise.all(items.slice(at, at + AT_ONCE).map(act));
}

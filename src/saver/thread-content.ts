/** Large states and values of steps, stored apart from their thread: in parts, each the input of a workflow that never runs. */
import { createHash } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { PerdureError } from '../contract/errors.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../contract/json.ts';
import { WORKFLOW } from '../contract/names.ts';
import { type ContentRef, contentId, THREAD_LIMIT } from '../contract/thread.ts';
import { deleteRun, findExecution, readInput } from './wire.ts';

/** Parts, or contents, that are on their way at one time. */
const AT_ONCE = 4;

/** What is to be stored. */
export interface Content {
  /** How often the thread was deleted before. */
  epoch: number;
  /** What it belongs to: the same text of the same is stored once. */
  of: JsonObject;
  /** Canonical JSON. */
  text: string;
  /** In words. */
  what: string;
}

/** Stores, loads and deletes contents. */
export class ContentStore {
  readonly #client: Client;
  readonly #taskQueue: string;

  constructor(client: Client, taskQueue: string) {
    this.#client = client;
    this.#taskQueue = taskQueue;
  }

  /**
   * Stores a content. The key says what it belongs to, and the time between two deletions of the thread, so that
   * clearing one away never takes another's.
   */
  async store(threadId: string, { epoch, of, text, what }: Content): Promise<ContentRef> {
    const digest = sha256(text);
    const identity = sha256(canonicalJson({ ...of, digest }));
    const key = `${prefixOf(threadId, epoch)}${identity.slice(0, 40)}`;
    const parts: string[] = [];
    for (let at = 0; at < text.length; at += THREAD_LIMIT.part)
      parts.push(text.slice(at, at + THREAD_LIMIT.part));
    await inChunks([...parts.entries()], async ([part, piece]) => {
      await this.#client.workflow.start(WORKFLOW.segment, {
        workflowId: contentId(key, part),
        taskQueue: this.#taskQueue,
        args: [piece],
        // Open, and without a task: no worker is given it, and retention does not remove it.
        startDelay: '10000 days',
        workflowIdConflictPolicy: 'USE_EXISTING',
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
        staticSummary: `part ${part} of ${what} of ${threadId}`.slice(0, 200),
      });
    });
    return { key, parts: parts.length, digest };
  }

  /** What was stored. @throws PerdureError `CHECKPOINT_CORRUPTION` when it is gone or not what was stored */
  async load({ key, parts, digest }: ContentRef): Promise<JsonValue> {
    const pieces: unknown[] = [];
    await inChunks([...Array(parts).keys()], async (part) => {
      pieces[part] = await readInput(this.#client, contentId(key, part));
    });
    const text = pieces.join('');
    if (sha256(text) !== digest) {
      throw new PerdureError(
        'CHECKPOINT_CORRUPTION',
        `The content ${contentId(key, 0)} of a checkpoint or step is gone or not what was stored`,
        { details: { key, parts } },
      );
    }
    return JSON.parse(text) as JsonValue;
  }

  async delete(contents: readonly ContentRef[]): Promise<void> {
    const ids = contents.flatMap(({ key, parts }) =>
      [...Array(parts).keys()].map((part) => contentId(key, part)),
    );
    await inChunks(ids, (id) => this.#deleteOne(id));
  }

  /** Deletes what puts of an epoch have left that were refused or died before they were stored, as far as it shows. */
  async deleteStrays(threadId: string, epoch: number): Promise<void> {
    const query = `WorkflowId STARTS_WITH 'perdure-content/${prefixOf(threadId, epoch)}'`;
    const ids: string[] = [];
    for await (const { workflowId } of this.#client.workflow.list({ query })) ids.push(workflowId);
    await inChunks(ids, (id) => this.#deleteOne(id));
  }

  async #deleteOne(workflowId: string): Promise<void> {
    const found = await findExecution(this.#client, workflowId);
    if (found !== null) await deleteRun(this.#client, workflowId, found.runId);
  }
}

/** Does something for all items, a few at a time. */
export async function inChunks<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE)
    await Promise.all(items.slice(at, at + AT_ONCE).map(act));
}

function prefixOf(threadId: string, epoch: number): string {
  return `${sha256(threadId).slice(0, 32)}/${epoch}/`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

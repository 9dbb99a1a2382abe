/** Large states and values of steps, stored apart from their thread: in parts, each the input of a workflow that never runs. */
import { createHash } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { canonicalJson, type JsonObject, type JsonValue } from '../contract/json.ts';
import { type ContentRef, contentId } from '../contract/thread.ts';
import { deleteRun, findExecution } from '../temporal/executions.ts';
import { loadParts } from '../temporal/index.ts';
import { inChunks, storeParts } from '../temporal/store-content.ts';

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
    return storeParts(this.#client, {
      key,
      text,
      what: `${what} of ${threadId}`,
      taskQueue: this.#taskQueue,
      // Open, and without a task: no worker is given it, and retention does not remove it.
      startDelay: '10000 days',
    });
  }

  /** What was stored. @throws PerdureError `CHECKPOINT_CORRUPTION` when it is gone or not what was stored */
  async load(content: ContentRef): Promise<JsonValue> {
    return JSON.parse(await loadParts(this.#client, content)) as JsonValue;
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

function prefixOf(threadId: string, epoch: number): string {
  return `${sha256(threadId).slice(0, 32)}/${epoch}/`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/**
 * Large states and steps, stored in parts beside their thread. Each part is the input of a workflow that never runs.
 */
import { createHash } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { canonicalJson, type JsonObject, type JsonValue } from '../contract/json.ts';
import { type ContentRef, contentId } from '../contract/thread.ts';
import { deleteRun, findExecution } from '../temporal/executions.ts';
import { loadParts } from '../temporal/index.ts';
import { inChunks, storeParts } from '../temporal/store-content.ts';

export interface Content {
  /** How often the thread was deleted before. */
  epoch: number;
  /** The owner. The same text for the same owner is stored once. */
  of: JsonObject;
  text: string;
  what: string;
}

export class ContentStore {
  readonly #client: Client;
  readonly #taskQueue: string;

  constructor(client: Client, taskQueue: string) {
    this.#client = client;
    this.#taskQueue = taskQueue;
  }

  /**
   * Stores a content. The key names its owner and the thread's epoch, so that a deletion never removes the content of
   * another owner.
   */
  async store(threadId: string, { epoch, of, text, what }: Content): Promise<ContentRef> {
    const digest = sha256(text);
    const identity = sha256(canonicalJson({ ...of, digest }));
    const key = `${prefixOf(threadId, epoch)}${identity.slice(0, 40)}`;
    return storeParts(this.#client, {
      key,
      content: text,
      what: `${what} of ${threadId}`,
      taskQueue: this.#taskQueue,
      // The workflow stays open without a task: no worker gets it, and retention does not remove it.
      startDelay: '10000 days',
    });
  }

  /** Loads a content. @throws PerdureError `CHECKPOINT_CORRUPTION` when it is gone or changed */
  async load(content: ContentRef): Promise<JsonValue> {
    return JSON.parse(await loadParts(this.#client, content)) as JsonValue;
  }

  async delete(contents: readonly ContentRef[]): Promise<void> {
    const ids = contents.flatMap(({ key, parts }) =>
      [...Array(parts).keys()].map((part) => contentId(key, part)),
    );
    await inChunks(ids, (id) => this.#deleteOne(id));
  }

  /** Deletes contents whose put was refused or interrupted. Finds only those that visibility lists. */
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

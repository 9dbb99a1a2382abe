/** A checkpoint saver over the API, as a harness of another language would write one. */

import { Turns } from '../../../src/checkpoints/turns.ts';
import type {
  Checkpoint,
  CheckpointSaver,
  GetOptions,
  JsonObject,
  JsonValue,
  ListOptions,
  PutOptions,
  StoredStep,
} from '../../../src/index.ts';
import { type ErrorCode, isPerdureError, PerdureError } from '../../../src/index.ts';
import { checkGet, checkId, checkList, checkPut, checkStep } from '../../../src/thread/checks.ts';

/** Checkpoints of one request: the most that the API gives. */
const PAGE = 100;

interface Page<T> {
  items: T[];
  /** Where the next one begins. */
  next: string | null;
}

export class HttpSaver implements CheckpointSaver {
  readonly #url: string;
  readonly #token: string;
  /** Requests travel on connections of their own: what is written in order is sent in order. */
  readonly #turns = new Turns();

  constructor(url: string, token: string) {
    this.#url = url;
    this.#token = token;
  }

  async put(threadId: string, state: JsonObject, options?: PutOptions): Promise<Checkpoint> {
    const put = checkPut(threadId, state, options);
    const { parentId: parent_id, metadata, id } = put;
    const body = { state: put.state, parent_id, metadata, ...(id === null ? {} : { id }) };
    return this.#turns.run(threadId, () => this.#call('PUT', [threadId, 'checkpoints'], { body }));
  }

  async get(threadId: string, options?: GetOptions): Promise<Checkpoint | null> {
    const id = checkGet(threadId, options);
    const path = id === null ? [threadId, 'latest'] : [threadId, 'checkpoints', id];
    return this.#orNull('CHECKPOINT_NOT_FOUND', path);
  }

  async list(threadId: string, options?: ListOptions): Promise<Checkpoint[]> {
    const { before, limit } = checkList(threadId, options);
    const found: Checkpoint[] = [];
    let from = before;
    while (found.length < limit) {
      const wanted = Math.min(PAGE, limit - found.length);
      const query = { limit: String(wanted), ...(from === null ? {} : { before: from }) };
      const page = await this.#call<Page<Checkpoint>>('GET', [threadId, 'checkpoints'], { query });
      found.push(...page.items);
      from = page.next;
      if (from === null) break;
    }
    return found;
  }

  async delete(threadId: string): Promise<void> {
    checkId('threadId', threadId);
    await this.#turns.run(threadId, () => this.#call('DELETE', [threadId]));
  }

  async putStep(threadId: string, key: string, value: JsonValue): Promise<StoredStep> {
    const body = { value: checkStep(threadId, key, value) };
    return this.#turns.run(threadId, () => this.#call('PUT', [threadId, 'steps', key], { body }));
  }

  async getStep(threadId: string, key: string): Promise<StoredStep | null> {
    checkId('threadId', threadId);
    checkId('key', key);
    return this.#orNull('STEP_NOT_FOUND', [threadId, 'steps', key]);
  }

  async listSteps(threadId: string): Promise<StoredStep[]> {
    checkId('threadId', threadId);
    const found: StoredStep[] = [];
    for (let query = {}; ; ) {
      const page = await this.#call<Page<StoredStep>>('GET', [threadId, 'steps'], { query });
      found.push(...page.items);
      if (page.next === null) return found;
      query = { after: page.next };
    }
  }

  async #orNull<T>(code: ErrorCode, path: string[]): Promise<T | null> {
    try {
      return await this.#call<T>('GET', path);
    } catch (error) {
      if (isPerdureError(error, code)) return null;
      throw error;
    }
  }

  async #call<T>(
    method: string,
    path: string[],
    { body, query = {} }: { body?: object; query?: Record<string, string> } = {},
  ): Promise<T> {
    const search = new URLSearchParams(query).toString();
    const response = await fetch(
      `${this.#url}/threads/${path.map(encodeURIComponent).join('/')}${search === '' ? '' : `?${search}`}`,
      {
        method,
        headers: {
          authorization: `Bearer ${this.#token}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      },
    );
    if (response.status === 204) return undefined as T;
    const answer: unknown = await response.json();
    if (response.ok) return answer as T;
    const { code, message, details } = (answer as { error: PerdureError }).error;
    throw new PerdureError(code, message, { details });
  }
}

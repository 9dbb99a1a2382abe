/** A handle of a pool of money, for clients. */
import type { Client, WorkflowHandle } from '@temporalio/client';
import { invalid } from '../contract/errors.ts';
import { parseInput } from '../contract/inputs.ts';
import { defined, toJson } from '../contract/json.ts';
import {
  POOL_QUERY,
  POOL_UPDATE,
  type PoolSetInput,
  type PoolView,
  poolIdSchema,
  poolSetSchema,
} from '../contract/pool.ts';
import { parseKnown } from '../contract/unknown-name.ts';
import { poolWorkflowId } from '../contract/workflow-ids.ts';
import { poolError } from '../temporal/errors.ts';
import { updatePool } from '../temporal/pool-update.ts';
import { ANSWER_MS } from './requests.ts';

/**
 * A handle of a pool: caps that many sessions share. A session that was started with `pool` draws from the pool before
 * it asks a model. When a cap is met, the session waits until the cap is raised, the next period begins, or other
 * sessions give money back.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { Sessions } from 'perdure/client';
 *
 * const sessions = new Sessions(new Client());
 * const pool = sessions.pool('tenant-7');
 * await pool.set({ usd: 100, period: 'month', zone: 'Europe/Berlin' });
 * await sessions.start('desk', { id: 'ticket-7', message: 'Where is my order?', pool: pool.id });
 * const { spent, limits, waiting } = await pool.get();
 * console.log(`${spent.usd} of ${limits.usd} dollars are spent, ${waiting.length} sessions wait`);
 * ```
 */
export class Pool {
  readonly id: string;
  readonly #client: Client;
  readonly #handle: WorkflowHandle;
  readonly #taskQueue: string;

  constructor(client: Client, id: string, taskQueue: string) {
    const parsed = parseInput(poolIdSchema, id);
    if (!parsed.ok) throw invalid('id', parsed.problem);
    this.id = id;
    this.#client = client;
    this.#taskQueue = taskQueue;
    this.#handle = client.workflow.getHandle(poolWorkflowId(id));
  }

  /**
   * Sets caps, and makes the pool if there is none. A cap that is left out stays, and `null` removes a cap. Sessions
   * that wait continue if they now have enough.
   *
   * @throws PerdureError `INVALID_ARGUMENT` naming the field; `NO_WORKER`, `SERVER_UNAVAILABLE`: then repeat the call
   */
  async set(input: PoolSetInput): Promise<PoolView> {
    const parsed = parseKnown(poolSetSchema, toJson(defined(input), 'pool'));
    if (!parsed.ok) throw invalid(parsed.field, parsed.problem);
    const to = { pool: this.id, taskQueue: this.#taskQueue, name: POOL_UPDATE.set };
    return this.#answered(() => updatePool(this.#client, { ...to, input: parsed.value }));
  }

  /**
   * Returns the caps, what is spent and held, and by which sessions.
   *
   * @throws PerdureError `POOL_NOT_FOUND` when nobody has set it; `NO_WORKER`, `SERVER_UNAVAILABLE`
   */
  async get(): Promise<PoolView> {
    return this.#answered(() => this.#handle.query<PoolView>(POOL_QUERY.state));
  }

  async #answered<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await this.#client.withDeadline(Date.now() + ANSWER_MS, ask);
    } catch (error) {
      throw poolError(this.id, error);
    }
  }
}

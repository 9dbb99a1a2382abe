/** Holds the model requests of a worker back until the rate limits of their providers' keys allow them. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from '@temporalio/activity';
import { type Client, WithStartWorkflowOperation } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { AgentRuntime, Model } from '../agent/index.ts';
import { tenantOf } from '../contract/context.ts';
import { messageOf } from '../contract/errors.ts';
import { utf8Length } from '../contract/json.ts';
import { TASK_TIMEOUT } from '../contract/limits.ts';
import type { Message } from '../contract/messages.ts';
import type { ModelInput, ModelResult } from '../contract/model-call.ts';
import { WORKFLOW } from '../contract/names.ts';
import {
  RATES,
  type RateAnswer,
  type RateDemand,
  type RateExchange,
  type RateLimiterInput,
  type RateSaid,
  type RateSettlement,
  type WindowLimit,
} from '../contract/rates.ts';
import { bytesOf } from '../contract/view.ts';
import { rateLimiterId } from '../contract/workflow-ids.ts';
import { saidLimits } from './rate-headers.ts';
import type { RequestResult } from './reply-collector.ts';
import type { AnswerHead } from './request-model.ts';
import { TokenEstimate } from './token-estimate.ts';

/** The shortest time between two updates from a worker to a limiter, in milliseconds. The first one goes at once. */
const PACE_MS = 250;
/** How long a limiter may take to answer. A grant that took longer than this is not used. */
const ANSWER_MS = 8_000;
/** Events in one run of a limiter: few enough that a replay of the run takes less than {@link TASK_TIMEOUT}. */
const RUN_EVENTS = 600;
/** The pause after a 429 that names no delay, as a fraction of the window. */
const BACK_OFF = 1 / 20;

/** A request that a limit allows. */
interface Slot {
  /** Call this when the provider begins to answer: it has counted the request by then. */
  answered(): void;
  /** Call this with the head of the answer, whose headers may name the provider's limits. */
  said(head: AnswerHead): void;
  /** Call this with the result, which says what the request has used. `null`: the request was not sent. */
  end(result: RequestResult | null): void;
}

export type Entry =
  | ({ kind: 'granted' } & Slot)
  /** `result` says why the model is not asked. */
  | { kind: 'refused'; result: ModelResult };

type LimiterWorkflow = (input: RateLimiterInput) => Promise<void>;

/** The rate limits of a worker, by provider or model. */
export class RateGate {
  readonly #limits: ReadonlyMap<string, WindowLimit>;
  readonly #lines = new Map<string, Line>();

  constructor(limits: ReadonlyMap<string, WindowLimit>) {
    this.#limits = limits;
  }

  /**
   * Asks whether a request may be sent now. If not, the session is queued and gets a signal when it is its turn.
   *
   * @returns `null` for a model without a limit
   * @throws a retryable ApplicationFailure of type `unbilled` when the limiter does not answer
   */
  async enter(
    context: Context,
    input: ModelInput,
    request: {
      agent: AgentRuntime;
      model: Model;
      instructions: string;
      messages: readonly Message[];
      maxOutputTokens: number;
    },
    unbilled: string,
  ): Promise<Entry | null> {
    const key = limitFor(request.model, this.#limits.keys());
    const limit = key === null ? undefined : this.#limits.get(key);
    if (key === null || limit === undefined) return null;
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = new Line({ key, limit, client: context.client, taskQueue: context.info.taskQueue });
      this.#lines.set(key, line);
    }
    const estimate = line.estimate(request.model.modelId);
    const { tools } = request.agent.manifest;
    const bytes = utf8Length(request.instructions) + bytesOf(request.messages) + JSON.stringify(tools).length;
    const prompt = estimate.prompt(bytes);
    const { tokens: most = prompt } = line.limit;
    if (prompt > most) {
      const message =
        `rateLimits.${key}${limit.tokens === most ? '.tokensPerMinute' : ''}: the prompt has about ${prompt} tokens, and ${most} ` +
        `are allowed in ${limit.windowMs / 1_000} seconds. Raise it, widen the window, or set a smaller contextWindow`;
      return refused({ kind: 'failed', failure: 'provider_rejected', message, maybeBilled: 0 });
    }
    const { workflowId = '' } = context.info.workflowExecution ?? {};
    // A side question does not queue: if refused, it waits for the end of the turn. The turn itself may be queued
    // already, so the side question has another id.
    const isAside = input.aside !== undefined;
    const sessionId = isAside ? `${workflowId}#aside` : workflowId;
    const tenant = tenantOf(input.context) ?? '';
    const tokens = prompt + estimate.output(request.maxOutputTokens);
    const demand = { id: randomUUID(), sessionId, tenant, tokens };
    let ahead: number | null;
    try {
      ahead = await line.demand(demand, context.cancellationSignal);
    } catch (error) {
      if (context.cancellationSignal.aborted) return refused(interrupted());
      const message = `the limiter of ${key} did not answer: ${messageOf(error)}`;
      throw ApplicationFailure.create({ message, type: unbilled });
    }
    if (ahead !== null) {
      if (isAside) line.leave(sessionId);
      const others = ahead === 0 ? 'it is the next one' : `${ahead} sessions are before it`;
      return refused({ kind: 'limited', key, message: `${wordsOf(key, line.limit)}, and ${others}` });
    }
    return { kind: 'granted', ...line.slot(demand, estimate, bytes) };
  }

  /** Takes a session out of all queues. */
  leave(sessionId: string): void {
    for (const line of this.#lines.values()) line.leave(sessionId);
  }
}

/** The most specific name in `rateLimits` that fits a model: `openai:gpt-5` before `openai`. */
function limitFor(
  { provider, modelId }: Pick<Model, 'provider' | 'modelId'>,
  names: Iterable<string>,
): string | null {
  const [vendor] = provider.split('.');
  const fitting = [`${provider}:${modelId}`, `${vendor}:${modelId}`, provider, vendor];
  const known = new Set(names);
  return fitting.find((name) => name !== undefined && known.has(name)) ?? null;
}

function refused(result: ModelResult): Entry {
  return { kind: 'refused', result };
}

function interrupted(): ModelResult {
  return { kind: 'failed', failure: 'interrupted', message: 'cancelled before the request', maybeBilled: 0 };
}

function wordsOf(key: string, { requests, tokens, windowMs }: WindowLimit): string {
  const amounts = [
    ...(requests === undefined ? [] : [`${requests} requests`]),
    ...(tokens === undefined ? [] : [`${tokens} tokens`]),
  ];
  if (amounts.length === 0) return `${key} has a limit`;
  return `${key} allows ${amounts.join(' and ')} in ${windowMs / 1_000} seconds`;
}

/** Converts a time on this process's clock to an age, which other processes understand. */
function withAge({ at, ...said }: Omit<RateSaid, 'agoMs'> & { at: number }, now: number): RateSaid {
  return { ...said, agoMs: Math.floor(now - at) };
}

/** After how long the request may be sent, or how many sessions are before it. */
type Place = { afterMs: number } | { ahead: number };

interface Asking {
  demand: RateDemand;
  resolve: (place: Place) => void;
  reject: (error: unknown) => void;
}

/** The news of a worker for one limiter. One update carries the news of all its sessions. */
class Line {
  readonly #key: string;
  /** The limit in the worker's options. */
  readonly #limit: WindowLimit;
  /** The limit as the limiter last answered. It includes what the provider has said. */
  limit: WindowLimit;
  readonly #client: Client;
  readonly #taskQueue: string;
  readonly #estimates = new Map<string, TokenEstimate>();
  #asking: Asking[] = [];
  /** `answeredAt` is the time of the answer on this process's clock. */
  #settled: (Omit<RateSettlement, 'agoMs'> & { answeredAt: number })[] = [];
  #left: string[] = [];
  /** What the provider has said, and when. */
  #said: (Omit<RateSaid, 'agoMs'> & { at: number }) | undefined;
  /** Whether the limiter does not know yet what the provider says about its limits. */
  #unlearned = true;
  #telling = false;

  constructor(options: { key: string; limit: WindowLimit; client: Client; taskQueue: string }) {
    this.#key = options.key;
    this.#limit = options.limit;
    this.limit = options.limit;
    this.#client = options.client;
    this.#taskQueue = options.taskQueue;
  }

  estimate(modelId: string): TokenEstimate {
    const known = this.#estimates.get(modelId) ?? new TokenEstimate();
    this.#estimates.set(modelId, known);
    return known;
  }

  /** @returns `null` when the request may be sent, otherwise how many sessions are before it */
  async demand(demand: RateDemand, signal: AbortSignal): Promise<number | null> {
    const askedAt = performance.now();
    const place = await new Promise<Place>((resolve, reject) => {
      this.#asking.push({ demand, resolve, reject });
      this.#tell();
    });
    const inTime = performance.now() - askedAt < ANSWER_MS;
    if ('afterMs' in place && inTime) await delay(place.afterMs, undefined, { signal }).catch(() => {});
    if (!signal.aborted && 'ahead' in place) return place.ahead;
    if (!signal.aborted && inTime) return null;
    if ('ahead' in place) this.leave(demand.sessionId);
    else this.#settle({ id: demand.id, answeredAt: 0, unsent: true });
    throw signal.aborted ? signal.reason : new Error('its grant came too late');
  }

  slot({ id }: RateDemand, estimate: TokenEstimate, bytes: number): Slot {
    let answeredAt: number | undefined;
    let resetMs: number | undefined;
    const answered = (): void => {
      answeredAt ??= performance.now();
    };
    return {
      answered,
      said: (head) => {
        resetMs = this.#hear(id, head);
      },
      end: (result) => {
        answered();
        const settlement = { id, answeredAt: answeredAt ?? 0 };
        if (result === null) this.#settle({ ...settlement, unsent: true });
        else if (result.ok) {
          estimate.learn(bytes, result.usage);
          const { inputTokens, outputTokens } = result.usage;
          const isCounted = inputTokens !== null && outputTokens !== null;
          this.#settle({ ...settlement, ...(isCounted ? { tokens: inputTokens + outputTokens } : {}) });
        } else if (result.failure.limited === true) {
          const backOffMs = result.failure.retryAfterMs ?? resetMs ?? this.#limit.windowMs * BACK_OFF;
          this.#settle({ ...settlement, tokens: 0, backOffMs: Math.ceil(backOffMs) });
        } else this.#settle({ ...settlement, ...(result.failure.billed ? {} : { tokens: 0 }) });
      },
    };
  }

  /** @returns how long until a used-up amount is available again, in milliseconds */
  #hear(id: string, { ok, headers }: AnswerHead): number | undefined {
    if (this.#limit.fromHeaders !== true) return undefined;
    const said = saidLimits(headers);
    const amounts = Object.values(said);
    // An answer without such headers says that there is no limit.
    if (amounts.length > 0 || (ok && this.#unlearned)) {
      const answered = [...(this.#said?.answered ?? []), ...(ok ? [id] : [])];
      this.#said = { ...said, answered, at: performance.now() };
      this.#tell();
    }
    const usedUp = amounts.filter(({ remaining }) => remaining === 0).map((each) => each.resetMs ?? 0);
    return Math.max(0, ...usedUp) || undefined;
  }

  leave(sessionId: string): void {
    this.#left.push(sessionId);
    this.#tell();
  }

  #settle(settlement: Omit<RateSettlement, 'agoMs'> & { answeredAt: number }): void {
    this.#settled.push(settlement);
    this.#tell();
  }

  #tell(): void {
    if (this.#telling) return;
    this.#telling = true;
    void this.#tellAll().finally(() => {
      this.#telling = false;
    });
  }

  async #tellAll(): Promise<void> {
    // Requests that begin at the same time share one update.
    await Promise.resolve();
    while (this.#hasNews()) {
      const asking = this.#asking.splice(0);
      const settled = this.#settled.splice(0);
      const left = this.#left.splice(0);
      const said = this.#said;
      this.#said = undefined;
      const now = performance.now();
      try {
        const answer = await this.#exchange({
          limit: this.#limit,
          ...(said === undefined ? {} : { said: withAge(said, now) }),
          demands: asking.map(({ demand }) => demand),
          settled: settled.map(({ answeredAt, ...rest }) => ({
            ...rest,
            agoMs: Math.floor(now - answeredAt),
          })),
          left,
        });
        this.limit = answer.limit ?? this.#limit;
        this.#unlearned = answer.unlearned === true;
        const granted = new Map(answer.granted.map(({ id, afterMs }) => [id, afterMs]));
        const ahead = new Map(answer.queued.map((queued) => [queued.id, queued.ahead]));
        for (const { demand, resolve } of asking) {
          const afterMs = granted.get(demand.id);
          resolve(afterMs === undefined ? { ahead: ahead.get(demand.id) ?? 0 } : { afterMs });
        }
      } catch (error) {
        // No need to send the news again: a request that is not settled counts until it expires.
        for (const { reject } of asking) reject(error);
      }
      await delay(PACE_MS);
    }
  }

  #hasNews(): boolean {
    return this.#asking.length + this.#settled.length + this.#left.length > 0 || this.#said !== undefined;
  }

  #exchange(given: RateExchange): Promise<RateAnswer> {
    const start = new WithStartWorkflowOperation<LimiterWorkflow>(WORKFLOW.rates, {
      workflowId: rateLimiterId(this.#taskQueue, this.#key),
      taskQueue: this.#taskQueue,
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowTaskTimeout: TASK_TIMEOUT,
      args: [{ key: this.#key, runEvents: RUN_EVENTS }],
      staticSummary: `the rate limit of ${this.#key}`.slice(0, 130),
    });
    return this.#client.withDeadline(Date.now() + ANSWER_MS, () =>
      this.#client.workflow.executeUpdateWithStart<LimiterWorkflow, RateAnswer, [RateExchange]>(
        RATES.exchange,
        {
          args: [given],
          startWorkflowOperation: start,
        },
      ),
    );
  }
}

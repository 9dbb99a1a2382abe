/** The workflow that keeps the limit of one provider's key for all workers of a task queue. */
import {
  allHandlersFinished,
  condition,
  continueAsNew,
  defineQuery,
  defineUpdate,
  getExternalWorkflowHandle,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { parseInput } from '../contract/inputs.ts';
import { defined } from '../contract/json.ts';
import { SIGNAL } from '../contract/names.ts';
import {
  RATES,
  type RateAnswer,
  type RateExchange,
  type RateLimiterInput,
  type RateView,
  rateExchangeSchema,
} from '../contract/rates.ts';
import { exchange, isAtRest, nextAt, rateView, serve } from '../rates/limiter.ts';
import { newRates, type RateState } from '../rates/rate-state.ts';
import { failure } from './failure.ts';

/** The default number of events after which it continues in a new run. */
const RUN_EVENTS = 4_000;
/** A limiter that nobody needs ends after this time. The next request starts it again. */
const REST_MS = 600_000;

/** The limiter of one key. The pure functions `exchange` and `serve` decide everything. */
export async function rateLimiter({ key, runEvents, state: carried }: RateLimiterInput): Promise<void> {
  const maxEvents = runEvents ?? RUN_EVENTS;
  const state = (carried as RateState | undefined) ?? newRates();
  // This plain error fails the task, not the limiter: the limiter waits for a worker of the newer version.
  if ((state.schema ?? 1) !== 1)
    throw new Error(`a newer version wrote the limiter of ${key}: update the workers`);
  /** How many signals are under way. */
  let sending = 0;
  /** When it wakes by itself. */
  let wakesAt = Number.POSITIVE_INFINITY;
  const call = (sessionIds: readonly string[]): void => {
    for (const sessionId of sessionIds) {
      sending += 1;
      const sent = getExternalWorkflowHandle(sessionId).signal(SIGNAL.rateTurn, { key });
      // The session has ended, so others get its turn.
      sent
        .catch(() => {
          const answer = exchange(state, { demands: [], settled: [], left: [sessionId] }, Date.now());
          call(answer.called);
        })
        .finally(() => {
          sending -= 1;
        });
    }
  };
  setHandler(
    defineUpdate<RateAnswer, [RateExchange]>(RATES.exchange),
    (given) => {
      const { answer, called } = exchange(state, given, Date.now());
      call(called);
      return answer;
    },
    {
      validator: (raw: unknown) => {
        const parsed = parseInput(rateExchangeSchema, raw);
        if (parsed.ok) return;
        const { message, field } = parsed;
        throw failure({ code: 'INVALID_ARGUMENT', message, details: { field } });
      },
      description: 'From a worker: requests that sessions want to send, and what became of others',
    },
  );
  setHandler(defineQuery<RateView>(RATES.view), () => rateView(key, state, Date.now()), {
    description: 'What counts against the limit, and who waits',
  });
  for (;;) {
    call(serve(state, Date.now()));
    const { historyLength, continueAsNewSuggested } = workflowInfo();
    if (historyLength > maxEvents || continueAsNewSuggested) break;
    wakesAt = nextAt(state) ?? Number.POSITIVE_INFINITY;
    const ms = wakesAt === Number.POSITIVE_INFINITY ? REST_MS : Math.max(stepOf(state), wakesAt - Date.now());
    const isSooner = (): boolean =>
      (nextAt(state) ?? Number.POSITIVE_INFINITY) < wakesAt || workflowInfo().historyLength > maxEvents;
    const woken = await condition(isSooner, ms);
    if (woken || wakesAt < Number.POSITIVE_INFINITY) continue;
    serve(state, Date.now());
    if (isAtRest(state, Date.now()) && sending === 0) return;
  }
  await condition(() => sending === 0 && allHandlersFinished());
  await continueAsNew<typeof rateLimiter>({ key, ...defined({ runEvents }), state });
}

/** The least time between two wakes. What becomes free in between is given out together. */
function stepOf({ limit }: RateState): number {
  return Math.max(1, Math.floor(limit.windowMs / 200));
}

/**
 * The workflow of a pool. The pure state decides everything: the workflow feeds it, and signals sessions that can go
 * on.
 */
import {
  ApplicationFailure,
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  defineUpdate,
  getExternalWorkflowHandle,
  patched,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { type ParsedInput, parseInput } from '../contract/inputs.ts';
import { defined } from '../contract/json.ts';
import type { LazySchema } from '../contract/lazy-schema.ts';
import { PATCH, SIGNAL } from '../contract/names.ts';
import {
  type DrawAnswer,
  type DrawRequest,
  drawRequestSchema,
  POOL_QUERY,
  POOL_UPDATE,
  type PoolClosedInput,
  type PoolInput,
  type PoolSetInput,
  type PoolView,
  poolClosedSchema,
  poolSetSchema,
} from '../contract/pool.ts';
import { parseKnown } from '../contract/unknown-name.ts';
import { poolWorkflowId } from '../contract/workflow-ids.ts';
import {
  closed,
  draw,
  endOf,
  newPool,
  type PoolData,
  poolView,
  setPool,
  setProblem,
  wake,
} from '../pool/pool-state.ts';
import { failure } from './failure.ts';

/** The default number of updates after which a pool continues in a new run. */
const RUN_UPDATES = 1_000;

/**
 * A pool. It never ends by itself, and it ignores Temporal's cancellation, because its sessions would wait for it. To
 * remove a pool, terminate it.
 */
export async function budgetPool({ poolId, runUpdates, ...input }: PoolInput): Promise<void> {
  const { workflowId } = workflowInfo();
  if (workflowId !== poolWorkflowId(poolId)) {
    throw ApplicationFailure.nonRetryable(`${workflowId} is not pool ${poolId}`, 'INVALID_ARGUMENT');
  }
  // This plain error fails the task, not the pool: the pool waits for a worker of the newer version.
  const carried = input.carried as PoolData | undefined;
  if ((carried?.schema ?? 1) !== 1)
    throw new Error(`a newer version wrote pool ${poolId}: update the workers`);
  const pool = carried ?? newPool(poolId);
  let updates = 0;
  let telling = 0;
  const tell = async (sessionId: string): Promise<void> => {
    telling += 1;
    try {
      await getExternalWorkflowHandle(sessionId).signal(SIGNAL.poolChanged, { pool: poolId });
    } catch {
      // The session has ended. A running session that misses its signal asks again by itself.
    } finally {
      telling -= 1;
    }
  };
  const tellThoseWhoCanGoOn = (): void => {
    // Earlier code told a session that the pool would refuse again: it asked at once, was told at once, and so on.
    const woken = wake(pool, Date.now(), () => patched(PATCH.poolHoldsBack));
    for (const sessionId of woken) void tell(sessionId);
  };
  const update = <Input, Answer>(
    name: string,
    read: (raw: unknown) => ParsedInput<Input>,
    apply: (input: Input) => Answer,
    description: string,
  ): void =>
    setHandler(
      defineUpdate<Answer, [unknown]>(name),
      (raw) => {
        updates += 1;
        const answer = apply(raw as Input);
        tellThoseWhoCanGoOn();
        return answer;
      },
      {
        validator: (raw) => {
          const parsed = read(raw);
          if (parsed.ok) return;
          const { message, field } = parsed;
          throw failure({ code: 'INVALID_ARGUMENT', message, details: { field } });
        },
        description,
      },
    );
  const of =
    <T>(schema: LazySchema<T>) =>
    (raw: unknown): ParsedInput<T> =>
      parseInput(schema, raw);
  update<PoolSetInput, PoolView>(
    POOL_UPDATE.set,
    (raw) => {
      const parsed = parseKnown(poolSetSchema, raw);
      const problem = parsed.ok ? setProblem(pool, parsed.value) : null;
      return problem === null
        ? parsed
        : { ok: false, ...problem, message: `${problem.field}: ${problem.problem}` };
    },
    (input) => {
      setPool(pool, input, Date.now());
      return poolView(pool, Date.now());
    },
    'Sets caps: {usd?, tokens?, turns?, activeMs?, period?: day|month, zone?, by?}; null takes one away',
  );
  update<DrawRequest, DrawAnswer>(
    POOL_UPDATE.draw,
    of(drawRequestSchema),
    (input) => draw(pool, input, Date.now()),
    'From a session: {sessionId, no, settled, spent, need?, want?, unpriced?}',
  );
  update<PoolClosedInput, void>(
    POOL_UPDATE.closed,
    of(poolClosedSchema),
    (input) => closed(pool, input, Date.now()),
    'A session that held something does not run any more: {sessionId, no, spent?}',
  );
  setHandler(defineQuery<PoolView>(POOL_QUERY.state), () => poolView(pool, Date.now()), {
    description: 'Caps, what is spent and held, and by whom',
  });
  await CancellationScope.nonCancellable(async () => {
    const isDue = (): boolean =>
      updates >= (runUpdates ?? RUN_UPDATES) || workflowInfo().continueAsNewSuggested;
    const isChanged = (period: PoolData['period'], zone: string): boolean =>
      isDue() || pool.period !== period || pool.zone !== zone;
    while (!isDue()) {
      const { period, zone } = pool;
      const end = endOf(pool, Date.now());
      if (end === null) await condition(() => isChanged(period, zone));
      else if (!(await condition(() => isChanged(period, zone), end - Date.now()))) tellThoseWhoCanGoOn();
    }
    await condition(() => telling === 0 && allHandlersFinished());
    await continueAsNew<typeof budgetPool>({ poolId, ...defined({ runUpdates }), carried: pool });
  });
}

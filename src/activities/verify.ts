/** Asks a tool's `verify` whether the effect of a lost call happened. */
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { type DefinedTool, parseArgs, readContext } from '../agent/index.ts';
import { VERIFY_TRIES, type VerifyInput, type VerifyResult } from '../contract/activities.ts';
import type { ValueStore } from '../contract/values.ts';
import { beating } from './heartbeats.ts';
import { attempted } from './last-failure.ts';
import { recorded } from './recordable.ts';
import { type Storing, storingOf } from './storing.ts';
import { type FindAgent, runnable, withHeartbeats } from './tool.ts';
import { aborted, contextOf, errorText } from './tool-execution.ts';

/** Pause after the first failed try of `verify`, in milliseconds; twice that after the second. */
const VERIFY_PAUSE_MS = 1_000;
/** How many attempts may lose their worker. A frozen worker can take one attempt with each of its open polls. */
const VERIFY_WORKERS = 25;

/**
 * The `verify` activity. A `verify` that throws or does not answer is tried again here, and counts as *unknown* after
 * the last try. Temporal's own attempts are for lost workers only.
 */
export function runVerify(
  find: FindAgent,
  values: ValueStore | undefined,
  input: VerifyInput,
): Promise<VerifyResult> {
  const context = Context.current();
  return attempted(context, () => verify(context, find, values, input), VERIFY_WORKERS);
}

async function verify(
  context: Context,
  find: FindAgent,
  values: ValueStore | undefined,
  input: VerifyInput,
): Promise<VerifyResult> {
  const storing = storingOf(context, values);
  const agent = find(input.agent);
  const definition = agent?.definition;
  const tool = runnable(agent, input);
  if (definition === undefined || tool?.verify === undefined) {
    return { outcome: 'unknown', reason: `${input.tool} has no verify on this worker` };
  }
  const parsed = await beating(() => parseArgs(tool, input.args));
  if (!parsed.ok)
    return { outcome: 'unknown', reason: `its arguments no longer fit the schema: ${parsed.problem}` };
  const session = await beating(() => readContext(definition, input.context, tool));
  if (!session.ok) return { outcome: 'unknown', reason: session.problem };
  for (let attempt = 1; ; attempt++) {
    try {
      return await tryVerify(context, tool, input, {
        value: parsed.value,
        session: session.value,
        attempt,
        storing,
      });
    } catch (error) {
      const reason = errorText(`verify of ${input.tool}`, error);
      if (context.cancellationSignal.aborted) throw ApplicationFailure.retryable(reason, 'VerifyFailed');
      if (attempt === VERIFY_TRIES) return { outcome: 'unknown', reason };
    }
    await withHeartbeats(context, input.timeoutMs, () => context.sleep(attempt * VERIFY_PAUSE_MS));
  }
}

function tryVerify(
  context: Context,
  tool: DefinedTool,
  input: VerifyInput,
  {
    value,
    session,
    attempt,
    storing,
  }: { value: unknown; session: unknown; attempt: number; storing: Storing | undefined },
): Promise<VerifyResult> {
  return withHeartbeats(context, input.timeoutMs, async (abortSignal) => {
    const toolContext = contextOf(input, session, { attempt, abortSignal });
    const ended = await Promise.race([
      Promise.resolve(tool.verify?.(value, toolContext)).then((found: unknown) => ({ found })),
      aborted(abortSignal),
    ]);
    if (ended === 'aborted') throw new Error(`no answer in ${input.timeoutMs} ms`);
    return readVerification(tool, input, { value, storing }, ended.found);
  });
}

async function readVerification(
  tool: DefinedTool,
  input: VerifyInput,
  { value, storing }: { value: unknown; storing: Storing | undefined },
  found: unknown,
): Promise<VerifyResult> {
  const { outcome, output, reason } = (found ?? {}) as {
    outcome?: unknown;
    output?: unknown;
    reason?: unknown;
  };
  const why = typeof reason === 'string' ? reason : `verify says ${String(outcome)}`;
  if (outcome === 'landed') return { outcome, ...(await recorded(tool, value, input, storing, output)) };
  if (outcome === 'absent' || outcome === 'unknown') return { outcome, reason: why };
  return {
    outcome: 'unknown',
    reason: `verify of ${input.tool} returned neither { outcome: 'landed', output }, 'absent' nor 'unknown'`,
  };
}

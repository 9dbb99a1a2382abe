/** Runs a tool, and records exactly what is known about its effect. */

import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { AgentRuntime } from '../agent/index.ts';
import { compensating, type DefinedTool, type NotAttemptedError, readContext } from '../agent/index.ts';
import type { ToolInput, ToolResult } from '../contract/activities.ts';
import { isPerdureError } from '../contract/errors.ts';
import { BEGAN } from '../contract/failure.ts';
import type { AgentUnavailable, NewManifest } from '../contract/model-call.ts';
import type { ValueStore } from '../contract/values.ts';
import { doneBefore, isGone, unavailable } from './earlier-runs.ts';
import { Fence } from './fence.ts';
import { beatingBefore } from './heartbeats.ts';
import type { IssuedCalls, IssuedHere } from './issued-calls.ts';
import { questionIn } from './questions.ts';
import { recorded } from './recordable.ts';
import { sealedAnswer } from './sealed-records.ts';
import { shutDown } from './shut-down.ts';
import { stopWith } from './stop-with.ts';
import { REPORT_MS, type Storing, storingOf } from './storing.ts';
import { aborted, checkedArgs, contextOf, errorText, execute } from './tool-execution.ts';

/** Finds an agent by name. */
export type FindAgent = (name: string) => AgentRuntime | undefined;

/** What the `tool` activity needs of its worker. */
export interface ToolRunner {
  find: FindAgent;
  issued: IssuedCalls;
  /** Called with the activity's task token in base64 when the tool of a mutation begins. */
  began: (taskToken: string) => void;
  values?: ValueStore | undefined;
}

/** The `tool` activity. */
export async function runTool(
  { find, issued, began, values }: ToolRunner,
  input: ToolInput,
): Promise<ToolResult> {
  const context = Context.current();
  const startedAt = performance.now();
  const storing = storingOf(context, values);
  const { activityId, workflowExecution } = context.info;
  const issuedHere = issued.take(workflowExecution?.runId ?? '', activityId, input);
  const agent = find(input.agent);
  const tool = runnable(agent, input);
  if (agent === undefined || tool === undefined) {
    return { kind: 'unavailable', message: missing(find, input.agent, input.tool) };
  }
  const known = agent.manifest.tools[input.tool];
  if (input.effect !== 'mutate' && known?.effect === 'mutate') return newManifest(context, agent);
  const checked = await beatingBefore(context, () => check(context, agent, tool, input));
  if (!checked.ok) return checked.result;
  const { value, session } = checked;
  return input.effect === 'mutate'
    ? runMutation(context, tool, input, { value, session, startedAt, issuedHere, began, storing })
    : runRepeatable(context, tool, input, { value, session, storing, attempts: known?.maxAttempts ?? 1 });
}

/** Checks a call's context and arguments, and looks for an equal call of an earlier run. */
async function check(
  { client }: Context,
  { definition }: AgentRuntime,
  tool: DefinedTool,
  input: ToolInput,
): Promise<{ ok: true; value: unknown; session: unknown } | { ok: false; result: ToolResult }> {
  const ended = (result: ToolResult): { ok: false; result: ToolResult } => ({ ok: false, result });
  const session = await readContext(definition, input.context, tool);
  if (!session.ok) {
    const message = `${session.problem}. Resume the session when it fits`;
    return ended({ kind: 'unavailable', message, misfit: true });
  }
  const parsed = await checkedArgs(tool, input);
  if (!parsed.ok) {
    return ended(
      input.effect === 'mutate'
        ? { kind: 'absent', reason: parsed.problem, retryable: false }
        : { kind: 'error', message: parsed.problem },
    );
  }
  try {
    const sealed = await sealedAnswer(client, input);
    return sealed === null ? { ok: true, value: parsed.value, session: session.value } : ended(sealed);
  } catch (error) {
    if (isGone(error)) return ended(unavailable(error));
    const reason = errorText('the look at the record before this run', error);
    return ended({ kind: 'absent', reason, retryable: true, unbegun: true });
  }
}

/** What a call runs: its tool, or the compensation of its tool; `undefined` where the worker has none. */
export function runnable(
  agent: AgentRuntime | undefined,
  { tool: name, compensates }: Pick<ToolInput, 'tool' | 'compensates'>,
): DefinedTool | undefined {
  const tool = agent?.definition.tools[name];
  return tool === undefined || compensates === undefined ? tool : compensating(tool, compensates);
}

/** Returns the worker's definition instead of running anything. */
export function newManifest({ info }: Context, { manifest }: AgentRuntime): NewManifest {
  return { kind: 'manifest', manifest, ...(info.attempt > 1 ? { again: true } : {}) };
}

async function runMutation(
  context: Context,
  tool: DefinedTool,
  input: ToolInput,
  {
    value,
    session,
    startedAt,
    issuedHere,
    began,
    storing,
  }: {
    value: unknown;
    session: unknown;
    startedAt: number;
    issuedHere: IssuedHere | undefined;
    began: (taskToken: string) => void;
    storing: Storing | undefined;
  },
): Promise<ToolResult> {
  const { info } = context;
  const runId = info.workflowExecution?.runId;
  // An operator can reset an activity's attempts, but not its first scheduled time.
  const again = info.attempt !== 1 || info.currentAttemptScheduledTimestampMs !== info.scheduledTimestampMs;
  if (runId !== input.issuedRunId || again) {
    // An operator has reset the workflow or the activity, or the server ignored our retry policy. The call may have
    // run.
    return {
      kind: 'unknown',
      reason: `refused: dispatched by run ${input.issuedRunId ?? 'none'}, running in ${runId ?? 'none'} as ${again ? 'another attempt' : 'the first attempt'}`,
    };
  }
  const issued = input.markFirst === true ? undefined : issuedHere?.at;
  const fence = new Fence(context, { issued, details: BEGAN });
  try {
    const before =
      issuedHere?.firstRun === true ? null : await beatingBefore(context, () => doneBefore(context, input));
    if (before !== null) return before;
    await fence.pass();
  } catch (error) {
    return { kind: 'absent', reason: errorText('fence', error), retryable: true, unbegun: true };
  }
  // The server settles the call from the end of the activity's own time, so the tool must stop before that.
  const leftMs = startedAt + info.startToCloseTimeoutMs - REPORT_MS - performance.now();
  const timeoutMs = Math.floor(Math.min(input.timeoutMs, leftMs));
  if (timeoutMs <= 0) return { kind: 'absent', reason: 'its checks took too long', retryable: true };
  began(info.base64TaskToken);
  const attempt = async (abortSignal: AbortSignal, timedOut: () => boolean): Promise<ToolResult> => {
    const run = execute(
      tool,
      value,
      contextOf(input, session, { attempt: input.dispatchNo, abortSignal, fence }),
    );
    try {
      const ended = await Promise.race([run.then((output) => ({ output })), aborted(abortSignal)]);
      if (ended !== 'aborted')
        return { kind: 'output', ...(await recorded(tool, value, input, storing, ended.output)) };
      run.catch(() => {});
      const lost = 'stopped: the server may have given the call to another worker';
      const other = fence.lost.aborted ? lost : 'cancelled in flight';
      const reason = timedOut() ? `timed out after ${timeoutMs} ms` : other;
      return { kind: 'unknown', reason, ...released(context) };
    } catch (error) {
      const question = questionIn(error);
      if (question !== null) return { kind: 'asks', question };
      if (isPerdureError(error, 'NOT_ATTEMPTED')) {
        return {
          kind: 'absent',
          reason: errorText(input.tool, error),
          retryable: (error as NotAttemptedError).retryable,
        };
      }
      return { kind: 'unknown', reason: errorText(input.tool, error), ...released(context) };
    }
  };
  return fence.held(() => withHeartbeats(context, timeoutMs, attempt, { stop: fence.lost, details: BEGAN }));
}

/** A shutdown that interrupts a call does not count as a failure of the tool. */
function released(context: Context): { released?: true } {
  return shutDown(context) ? { released: true } : {};
}

async function runRepeatable(
  context: Context,
  tool: DefinedTool,
  input: ToolInput,
  {
    value,
    session,
    storing,
    attempts,
  }: { value: unknown; session: unknown; storing: Storing | undefined; attempts: number },
): Promise<ToolResult> {
  const begun = begunBefore(context, attempts) + 1;
  if (begun > attempts) {
    const message = `its worker was lost in each of its ${attempts} attempts`;
    throw ApplicationFailure.nonRetryable(message, 'WorkersLost');
  }
  const details: Begun = { begun };
  if (countsFirst(context, attempts)) {
    try {
      await new Fence(context, { details }).pass();
    } catch (error) {
      if (context.cancellationSignal.aborted) await context.cancelled;
      throw ApplicationFailure.retryable(errorText('fence', error), 'ToolNotBegun');
    }
  }
  const attempt = async (abortSignal: AbortSignal, timedOut: () => boolean): Promise<ToolResult> => {
    const toolContext = contextOf(input, session, {
      attempt: begun,
      abortSignal,
      fence: new Fence(context, { details }),
    });
    const run = execute(tool, value, toolContext);
    try {
      const ended = await Promise.race([run.then((output) => ({ output })), aborted(abortSignal)]);
      if (ended !== 'aborted')
        return { kind: 'output', ...(await recorded(tool, value, input, storing, ended.output)) };
      run.catch(() => {});
      if (shutDown(context) && !timedOut()) return { kind: 'released' };
      // A cancelled call has no result. The session knows whether to run it again.
      if (!timedOut()) await context.cancelled;
      return { kind: 'error', message: `${input.tool} timed out after ${input.timeoutMs} ms` };
    } catch (error) {
      if (shutDown(context)) return { kind: 'released' };
      if (context.cancellationSignal.aborted) throw error;
      const question = questionIn(error);
      if (question !== null) return { kind: 'asks', question };
      const transient = isPerdureError(error, 'NOT_ATTEMPTED') && (error as NotAttemptedError).retryable;
      const last = begun >= attempts;
      const message = errorText(input.tool, error);
      if (transient && !last) throw ApplicationFailure.retryable(message, 'ToolFailed');
      return { kind: 'error', message };
    }
  };
  return withHeartbeats(context, input.timeoutMs, attempt, { details });
}

/** Heartbeat details of a repeatable call: how many of its attempts have begun. */
interface Begun {
  begun: number;
}

/** How many attempts began before this one. Temporal's own count includes attempts that died before they began. */
function begunBefore({ info }: Context, attempts: number): number {
  if (info.attempt === 1) return 0;
  const details: unknown = info.heartbeatDetails;
  if (typeof details === 'object' && details !== null) return (details as Begun).begun;
  // The first attempt may have begun without being counted.
  return attempts === 1 ? 0 : 1;
}

/**
 * Whether an attempt is counted at the server before the tool begins. The first attempt of a tool with more attempts is
 * not counted: that saves a request.
 */
function countsFirst({ info }: Context, attempts: number): boolean {
  return info.attempt > 1 || attempts === 1;
}

/** Runs a call until it times out, is cancelled, or `stop` aborts. Sends heartbeats with `details` meanwhile. */
export async function withHeartbeats<T>(
  context: Context,
  timeoutMs: number,
  run: (abortSignal: AbortSignal, timedOut: () => boolean) => Promise<T>,
  { stop: other, details }: { stop?: AbortSignal; details?: unknown } = {},
): Promise<T> {
  const stop = stopWith(context.cancellationSignal, ...(other === undefined ? [] : [other]));
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    stop.abort(new Error(`timed out after ${timeoutMs} ms`));
  }, timeoutMs);
  const signs = setInterval(
    () => context.heartbeat(details),
    (context.info.heartbeatTimeoutMs ?? 10_000) / 4,
  );
  try {
    return await run(stop.signal, () => timedOut);
  } finally {
    clearTimeout(timer);
    clearInterval(signs);
  }
}

/** Why an agent or tool is missing, and what to do. */
export function missing(find: FindAgent, agent: string, tool?: string): string {
  return find(agent) === undefined ? noAgent(agent).message : noTool(agent, tool ?? '');
}

/** The result when this worker does not have the agent. Another worker may have it. */
export function noAgent(agent: string): AgentUnavailable {
  const { taskQueue } = Context.current().info;
  const message = `this worker has no agent ${agent}. The session continues when a worker of task queue ${taskQueue} has the agent`;
  return { kind: 'unavailable', message, lookAgain: true };
}

/** Why a tool is missing, and what to do. */
export function noTool(agent: string, tool: string): string {
  const { taskQueue } = Context.current().info;
  return `agent ${agent} has no tool ${tool} on this worker. The call continues when a worker of task queue ${taskQueue} has the tool, or when somebody resolves it`;
}

/** A call of scope `global`: one execution over all sessions, by the uniqueness of Temporal's workflow ids. */
import { Context } from '@temporalio/activity';
import { WorkflowExecutionAlreadyStartedError, type WorkflowHandle } from '@temporalio/client';
import type { ToolInput, ToolResult } from '../contract/activities.ts';
import type { ToolCall } from '../contract/calls.ts';
import type { EffectInput, SessionInput, SessionResult } from '../contract/inputs.ts';
import { canonicalJson, type JsonValue } from '../contract/json.ts';
import { argsDigest } from '../contract/keys.ts';
import type { Manifest } from '../contract/manifest.ts';
import { QUERY, WORKFLOW } from '../contract/names.ts';
import { replayedContent } from '../contract/replay.ts';
import type { CallsPage, SessionView } from '../contract/views.ts';
import { type FindAgent, missing } from './tool.ts';

/** How often the effect is looked at, in milliseconds: soon at first, then less and less. */
const LOOK = { firstMs: 20, maxMs: 2_000 } as const;
/** What is given to a call and its verification beside their own times, in milliseconds, when the session is cancelled. */
const SETTLING_MS = 10_000;

/**
 * The `globalTool` activity: starts the effect's own session unless there is one, and waits for its outcome.
 *
 * It has no effect of its own, so Temporal may repeat it: it attaches to the session that is there. The effect
 * runs under the same protocol as any mutation; when that needs a person, the result says where. An effect whose
 * session was ended from outside is looked for by the one that follows, before it is dispatched again. A session that
 * is cancelled waits for as long as a call of its own would take to settle; then its result is that nobody knows.
 */
export async function runGlobalTool(
  find: FindAgent,
  searchAttributes: readonly string[],
  input: ToolInput,
): Promise<ToolResult> {
  const context = Context.current();
  const manifest = find(input.agent)?.manifest;
  const tool = manifest?.tools[input.tool];
  if (manifest === undefined || tool === undefined) {
    return { kind: 'unavailable', message: missing(find, input.agent, input.tool) };
  }
  const { client, info } = context;
  const workflowId = effectSession(input.idempotencyKey);
  const requestedBy = `${info.workflowExecution?.workflowId ?? ''}/${input.callId}`;
  const effect: EffectInput = {
    tool: input.tool,
    args: input.args,
    argsDigest: argsDigest(input.tool, input.args),
    idempotencyKey: input.idempotencyKey,
    requestedBy,
    manifest: cutDown(manifest, input.tool),
    searchAttributes: [...searchAttributes],
  };
  await begin(context, input.agent, effect, tool.timeoutMs);
  const handle = client.workflow.getHandle(workflowId);
  const session = client.workflow.getHandle(
    info.workflowExecution?.workflowId ?? '',
    info.workflowExecution?.runId,
  );
  let patienceEnds = Infinity;
  let ended = false;
  for (let wait: number = LOOK.firstMs; ; wait = Math.min(wait * 2, LOOK.maxMs)) {
    context.heartbeat();
    if (wait === LOOK.maxMs && patienceEnds === Infinity && (await isCancelling(session)))
      patienceEnds = performance.now() + tool.timeoutMs + tool.settleMs + SETTLING_MS;
    if (performance.now() > patienceEnds) {
      return {
        kind: 'error',
        message: 'The session was cancelled. Its effect may still happen, in a session of its own',
      };
    }
    const [call] = (await handle.query<CallsPage>(QUERY.calls)).items;
    if (call?.status.kind === 'completed') {
      const { effect: kept } = await handle.query<SessionView>(QUERY.state);
      return { kind: 'output', output: marked(call, kept?.requestedBy, requestedBy) };
    }
    const result = call === undefined ? undefined : outcomeOf(call, workflowId);
    if (result !== undefined) return result;
    // It had ended before it was asked again, and has no outcome.
    if (ended) await begin(context, input.agent, effect, tool.timeoutMs);
    ended = !ended && wait === LOOK.maxMs && (await handle.describe()).status.name !== 'RUNNING';
    if (!ended) await context.sleep(wait);
  }
}

/** The id of an effect's own session. */
function effectSession(idempotencyKey: string): string {
  return `effect:${idempotencyKey}`;
}

/** Sees to it that the effect has a session, which verifies first when one before it was ended from outside. */
async function begin(context: Context, agent: string, effect: EffectInput, timeoutMs: number): Promise<void> {
  const { client, info } = context;
  const workflowId = effectSession(effect.idempotencyKey);
  const start = (
    workflowIdReusePolicy: 'REJECT_DUPLICATE' | 'ALLOW_DUPLICATE',
    doubt?: string,
  ): Promise<unknown> =>
    client.workflow.start(WORKFLOW.session, {
      workflowId,
      taskQueue: info.taskQueue,
      args: [{ agent, effect: doubt === undefined ? effect : { ...effect, doubt } } satisfies SessionInput],
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowIdReusePolicy,
      workflowTaskTimeout: '2s',
      staticSummary: `${effect.tool} · ${effect.requestedBy}`.slice(0, 200),
    });
  try {
    await start('REJECT_DUPLICATE');
    return;
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
  const doubt = await doubtOf(context, workflowId);
  if (doubt !== undefined) {
    // Its last dispatch may be under way for that long: nobody has told it to stop.
    for (const ends = performance.now() + timeoutMs; performance.now() < ends; ) {
      context.heartbeat();
      await context.sleep(Math.min(LOOK.maxMs, timeoutMs));
    }
  }
  await start('ALLOW_DUPLICATE', doubt);
}

/** Why nobody knows what became of an effect whose session has closed; `undefined` when its time to live was over. */
async function doubtOf({ client }: Context, workflowId: string): Promise<string | undefined> {
  const { status, runId } = await client.workflow.getHandle(workflowId).describe();
  if (status.name === 'RUNNING') return undefined;
  if (status.name === 'COMPLETED') {
    const result = (await client.workflow.result(workflowId, runId)) as SessionResult;
    if (result.status === 'completed') return undefined;
  }
  const how = status.name === 'COMPLETED' ? 'cancelled' : status.name.toLowerCase().replace('_', ' ');
  return `nobody knows what became of it: its session ${workflowId} was ${how}`;
}

/** Whether the session that waits is being cancelled; one that does not answer now is asked again. */
async function isCancelling(session: WorkflowHandle): Promise<boolean> {
  try {
    return (await session.query<SessionView>(QUERY.state)).phase === 'cancelling';
  } catch {
    return false;
  }
}

function cutDown(manifest: Manifest, tool: string): Manifest {
  const kept = manifest.tools[tool];
  return { ...manifest, instructions: '', models: [], tools: kept === undefined ? {} : { [tool]: kept } };
}

function outcomeOf(call: ToolCall, workflowId: string): ToolResult | undefined {
  const content = call.result?.content ?? null;
  switch (call.status.kind) {
    case 'failed':
      return call.status.certain
        ? { kind: 'absent', reason: asText(content), retryable: false }
        : { kind: 'error', message: asText(content) };
    case 'skipped':
      return { kind: 'absent', reason: asText(content), retryable: false };
    case 'unknown':
    case 'stuck':
      return {
        kind: 'unavailable',
        message: `its effect waits for a person (${call.status.reason}). Resolve call ${call.id} of session ${workflowId}, then resume this session`,
      };
    default:
      return undefined;
  }
}

/** Who did not ask first is told that the effect is not its own. */
function marked(call: ToolCall, first: string | undefined, requestedBy: string): JsonValue {
  const content = call.result?.content ?? null;
  return first === undefined || first === requestedBy
    ? content
    : replayedContent({ tool: call.name, of: first, where: 'by another session' }, content);
}

function asText(content: JsonValue): string {
  return typeof content === 'string' ? content : canonicalJson(content);
}

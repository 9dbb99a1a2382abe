/**
 * Effects of scope `global`: each runs once across all sessions, because Temporal's workflow ids are unique.
 *
 * The effect has its own workflow, in which the call runs like any mutation. A session's call attaches to it and waits.
 * The effect signals the session when there is news. The session does not trust the signal: it reads the outcome from
 * the effect's history, here.
 */
import type { Context } from '@temporalio/activity';
import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { AttachInput, AttachResult, ReportInput } from '../contract/activities.ts';
import { dispatchNoOf, isFinal, type ToolCall } from '../contract/calls.ts';
import type { WaiterInput } from '../contract/inputs.ts';
import { canonicalJson, defined, type JsonValue } from '../contract/json.ts';
import { argsDigest } from '../contract/keys.ts';
import { LIMIT, TASK_TIMEOUT } from '../contract/limits.ts';
import { SIGNAL, WORKFLOW } from '../contract/names.ts';
import { replayedContent } from '../contract/replay.ts';
import type { EffectInput, SessionInput } from '../contract/session-input.ts';
import type { EffectRecord } from '../contract/state.ts';
import type { ChildDoneInput } from '../contract/tree.ts';
import type { ValueStore } from '../contract/values.ts';
import { effectId } from '../contract/workflow-ids.ts';
import { foldSession } from '../history/index.ts';
import { Values } from '../values/index.ts';
import { isGone } from './gone.ts';
import { beating } from './heartbeats.ts';
import { recordable } from './recordable.ts';
import { type Attaching, attachChild } from './sub-agent.ts';
import { type FindAgent, missing } from './tool.ts';

/** How long to wait before an effect that is about to change is read again, in milliseconds. */
const SOON_MS = 200;
/** After this many attempts, another program's workflow will not release the effect's id by itself. */
const FOREIGN_ATTEMPTS = 5;

/** The workflow that has the id of an effect. */
interface Found {
  running: boolean;
  /** How it ended, in Temporal's words. */
  end: string;
  record: { call: ToolCall; effect: EffectRecord } | null;
}

/**
 * The `attach` activity: finds the effect of a call, or starts it, and returns its outcome if there is one. Otherwise
 * it registers the session with the effect, which will signal it. Temporal may retry it safely.
 */
export async function runAttach(
  find: FindAgent,
  searchAttributes: () => Promise<readonly string[]>,
  values: ValueStore | undefined,
  input: AttachInput,
): Promise<AttachResult> {
  return beating(async (context) => {
    const { child } = input;
    const result =
      child === undefined
        ? await attach(context, { find, searchAttributes, input })
        : await attachChild(context, { find, searchAttributes, input }, child);
    // The effect may be deleted before the session, so both own the value. Temporal retries if the store fails.
    if (result.kind === 'output' && result.value !== undefined && values !== undefined) {
      const sessionId = context.info.workflowExecution?.workflowId ?? '';
      await new Values(values, context.client).share(result.value.digest, sessionId);
    }
    return result;
  });
}

async function attach(context: Context, { find, searchAttributes, input }: Attaching): Promise<AttachResult> {
  const { client, info } = context;
  const id = effectId(input.idempotencyKey);
  const waiter = { sessionId: info.workflowExecution?.workflowId ?? '', callId: input.callId };
  const found = await lookAt(client, id, input);
  if (found !== null && found.record !== null && answers(found, waiter))
    return resultOf(found.record, waiter, input);
  if (found?.running === true) {
    if (found.record === null) return foreign(context, id);
    const { call, effect } = found.record;
    // The effect failed for certain before this call was made. Wait until it has closed, then start another one.
    if (isFinal(call)) throw soon(`${id} is closing`);
    if (!isWaiter(effect, waiter)) await register(client, id, waiter);
    return waiting(call);
  }
  const doubt = found === null ? undefined : doubtOf(found, id);
  if (input.start === undefined) return { kind: 'gone', reason: doubt ?? `${id} has ended` };
  const manifest = find(input.agent)?.manifest;
  const tool = manifest?.tools[input.tool];
  if (manifest === undefined || tool === undefined) {
    return { kind: 'unavailable', message: missing(find, input.agent, input.tool) };
  }
  const effect: EffectInput = {
    tool: input.tool,
    args: input.start.args,
    argsDigest: argsDigest(input.tool, input.start.args),
    idempotencyKey: input.idempotencyKey,
    requestedBy: `${waiter.sessionId}/${waiter.callId}`,
    manifest: { ...manifest, instructions: '', models: [], tools: { [input.tool]: tool } },
    searchAttributes: [...(await searchAttributes())],
    ...(doubt === undefined ? {} : { doubt }),
  };
  // The effect's tool gets the context of the session that asks first.
  const asked = defined({ context: input.start.context });
  try {
    await client.workflow.signalWithStart(WORKFLOW.session, {
      workflowId: id,
      taskQueue: info.taskQueue,
      args: [{ agent: input.agent, ...asked, effect } satisfies SessionInput] as [unknown],
      signal: SIGNAL.awaitEffect,
      signalArgs: [waiter] as [unknown],
      workflowIdReusePolicy: found === null ? 'REJECT_DUPLICATE' : 'ALLOW_DUPLICATE',
      workflowTaskTimeout: TASK_TIMEOUT,
      staticSummary: `${effect.tool} · ${effect.requestedBy}`.slice(0, 200),
    });
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) throw soon(`${id} has just closed`);
    throw error;
  }
  return { kind: 'waiting' };
}

/**
 * The `report` activity: signals the sessions whose calls wait for the effect, or for this sub-agent. A session that
 * has ended needs no signal. A session that misses it checks by itself later.
 */
export async function runReport({
  waiters,
  end,
  resultLimit = LIMIT.toolResult,
}: ReportInput): Promise<void> {
  const told = await beating(({ client, info }) =>
    Promise.allSettled(
      waiters.map(({ sessionId, callId }) => {
        const waiter = client.workflow.getHandle(sessionId);
        if (end === undefined) return waiter.signal(SIGNAL.effectDone, { callId });
        const child = info.workflowExecution?.workflowId ?? '';
        const output = recordable(end.output, resultLimit);
        const done: ChildDoneInput = { child, end: { ...end, output } };
        return waiter.signal(SIGNAL.childDone, done);
      }),
    ),
  );
  const failed = told.find((one) => one.status === 'rejected' && !isGone(one.reason));
  if (failed?.status === 'rejected') throw failed.reason;
}

/** The workflow under the effect's id, or `null`. */
async function lookAt(
  client: Client,
  id: string,
  { tool, idempotencyKey }: AttachInput,
): Promise<Found | null> {
  const described = await client.workflow
    .getHandle(id)
    .describe()
    .catch((error: unknown) => {
      if (isGone(error)) return null;
      throw error;
    });
  if (described === null) return null;
  const { status, runId, type } = described;
  const found = { running: status.name === 'RUNNING', end: status.name.toLowerCase().replace('_', ' ') };
  if (type !== WORKFLOW.session) return { ...found, record: null };
  const { calls, effect } = await foldSession(client, id, runId);
  const [call] = calls;
  // Anybody can start a workflow with this id, so check that it is the effect of this key.
  const isIt = effect !== null && call?.name === tool && call.idempotencyKey === idempotencyKey;
  return { ...found, record: isIt ? { call, effect } : null };
}

/** Whether the record answers a call: the outcome is kept for all calls, or this call has waited for it. */
function answers({ running, record }: Found, waiter: WaiterInput): boolean {
  if (record === null || !isFinal(record.call)) return false;
  const { call, effect } = record;
  if (isWaiter(effect, waiter)) return true;
  if (!isKept(call)) return false;
  // A closed workflow does not undo its effect: the outcome stays valid until its time to live is over.
  return running || Date.now() < Date.parse(call.completedAt ?? '') + effect.ttlMs;
}

/** Whether an outcome is kept for other calls: it happened, or it is unknown and must not run again. */
function isKept({ status }: ToolCall): boolean {
  return status.kind === 'completed' || (status.kind === 'failed' && !status.certain);
}

function isWaiter({ waiters }: EffectRecord, { sessionId, callId }: WaiterInput): boolean {
  return waiters.some((waiter) => waiter.sessionId === sessionId && waiter.callId === callId);
}

/** Why the outcome of an effect is unknown after its workflow has closed; `undefined` when it is known. */
function doubtOf({ end, record }: Found, id: string): string | undefined {
  if (record === null) return undefined;
  const { status, dispatches } = record.call;
  // The outcome is known, and its time to live is over.
  if (isFinal(record.call)) return undefined;
  const began = dispatches.some(({ outcome }) => outcome !== 'absent');
  // An effect can be in doubt from its start, without a dispatch in this run.
  const doubted = status.kind !== 'ready' && status.kind !== 'backoff';
  return began || doubted ? `its outcome is unknown: its workflow ${id} was ${end}` : undefined;
}

/** Registers this call with the running effect. */
async function register(client: Client, id: string, waiter: WaiterInput): Promise<void> {
  try {
    await client.workflow.getHandle(id).signal(SIGNAL.awaitEffect, waiter);
  } catch (error) {
    throw isGone(error) ? soon(`${id} has just closed`) : error;
  }
}

/** An error after which Temporal soon retries the attempt. */
function soon(message: string): ApplicationFailure {
  return ApplicationFailure.create({ message, type: 'EffectChanges', nextRetryDelay: SOON_MS });
}

/** The result when another workflow has the id. A forged effect is refused by its worker at its first task. */
function foreign({ info }: Context, id: string): AttachResult {
  const message = `workflow ${id} has the id of this call's global effect, but is another workflow. Terminate it`;
  if (info.attempt < FOREIGN_ATTEMPTS) throw soon(message);
  return { kind: 'unavailable', message };
}

/** The result for a call that waits, with the decision that the effect needs from a person, if any. */
function waiting(call: ToolCall): AttachResult {
  const { id: callId, argsDigest: digest, status } = call;
  if (status.kind !== 'unknown' && status.kind !== 'stuck') return { kind: 'waiting' };
  const seen = { callId, argsDigest: digest, dispatchNo: dispatchNoOf(call) };
  return { kind: 'waiting', person: { ...status, call: seen } };
}

/** An outcome as the result of a call. Calls that did not start the effect learn that it was replayed. */
function resultOf(
  { call, effect }: NonNullable<Found['record']>,
  { sessionId, callId }: WaiterInput,
  { resultLimit = LIMIT.toolResult }: AttachInput,
): AttachResult {
  const content = call.result?.content ?? null;
  if (call.status.kind === 'completed') {
    const own = effect.requestedBy === `${sessionId}/${callId}`;
    const replay = { tool: call.name, of: effect.requestedBy, where: 'by another session' } as const;
    const output = own ? content : replayedContent(replay, content);
    return {
      kind: 'output',
      output: recordable(output, resultLimit),
      ...defined({ value: call.result?.value }),
    };
  }
  return call.status.kind === 'failed' && !call.status.certain
    ? { kind: 'error', message: asText(content) }
    : { kind: 'absent', reason: asText(content), retryable: false };
}

function asText(content: JsonValue): string {
  return typeof content === 'string' ? content : canonicalJson(content);
}

/** Sub-agents: starts the session of a call, or looks at it. */
import type { Context } from '@temporalio/activity';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { defineSearchAttributeKey, type SearchAttributePair } from '@temporalio/common';
import { type AgentRuntime, parseArgs } from '../agent/index.ts';
import type { AttachInput, AttachResult } from '../contract/activities.ts';
import { attributesOf } from '../contract/context.ts';
import { messageOf } from '../contract/errors.ts';
import { defined, type JsonObject, jsonSize } from '../contract/json.ts';
import { LIMIT, TASK_TIMEOUT } from '../contract/limits.ts';
import { SIGNAL, WORKFLOW } from '../contract/names.ts';
import type { SessionInput } from '../contract/session-input.ts';
import type { ChildEnd, ChildStart, SteerInput } from '../contract/tree.ts';
import { readChild } from '../history/index.ts';
import { isPolled } from '../temporal/pollers.ts';
import { contextMisfit } from './context-misfit.ts';
import { isGone } from './gone.ts';
import { beating } from './heartbeats.ts';
import { recordable } from './recordable.ts';
import { type FindAgent, missing } from './tool.ts';

/** A manifest with more bytes does not go into the session's input, which also holds the message. */
const DESCRIBED_BYTES = 100_000;

/** What attaching to an effect or a sub-agent needs. */
export interface Attaching {
  find: FindAgent;
  searchAttributes: () => Promise<readonly string[]>;
  input: AttachInput;
}

/**
 * Starts the session of a sub-agent, or finds the one that this call, or an equal one, has started. Temporal may retry
 * it safely: the session's id is that of the call's effect.
 */
export async function attachChild(
  { client, info }: Context,
  { find, searchAttributes, input }: Attaching,
  child: ChildStart,
): Promise<AttachResult> {
  if (input.start === undefined) return look({ client, info }, child, input);
  const tool = find(input.agent)?.definition.tools[input.tool];
  if (tool?.agent === undefined) {
    return { kind: 'unavailable', message: missing(find, input.agent, input.tool) };
  }
  const parsed = await parseArgs(tool, input.start.args);
  if (!parsed.ok) return { kind: 'absent', reason: parsed.problem, retryable: false };
  let text: unknown;
  try {
    text = tool.agent.message(parsed.value);
  } catch (error) {
    return { kind: 'absent', reason: `message failed: ${messageOf(error)}`, retryable: false };
  }
  if (typeof text !== 'string' || text.trim() === '') {
    return { kind: 'absent', reason: 'message returned no text', retryable: false };
  }
  const { sessionId, agent, taskQueue = info.taskQueue, pool, authors, parent } = child;
  const by = parent.sessionId.slice(0, 200);
  const { context } = input.start;
  const session: SessionInput = {
    agent,
    mode: 'task',
    message: { text, by },
    ...defined({ context, pool, authors }),
    parent,
    ...(taskQueue === info.taskQueue ? await describedPart(find(agent), searchAttributes, context) : {}),
  };
  try {
    await client.workflow.start(WORKFLOW.session, {
      workflowId: sessionId,
      taskQueue,
      args: [session] as [unknown],
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      workflowTaskTimeout: TASK_TIMEOUT,
      typedSearchAttributes: firstAttributes(session),
      staticSummary: `${agent} · ${sessionId}`.slice(0, 200),
    });
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return look({ client, info }, child, input);
    throw error;
  }
  return waiting({ client, info }, agent, taskQueue);
}

/** The agent's manifest, if this worker has the agent and the context fits. If not, the session asks for it. */
async function describedPart(
  agent: AgentRuntime | undefined,
  searchAttributes: Attaching['searchAttributes'],
  context: JsonObject | undefined,
): Promise<Pick<SessionInput, 'described'>> {
  if (agent === undefined || jsonSize(agent.manifest) > DESCRIBED_BYTES) return {};
  if ((await contextMisfit(agent, context)) !== null) return {};
  return { described: { manifest: agent.manifest, searchAttributes: [...(await searchAttributes())] } };
}

/**
 * The search attributes that the session would write in its first task. If one was removed from the server since the
 * worker looked, the server refuses the start. The next attempt of the activity looks again.
 */
function firstAttributes(session: SessionInput): SearchAttributePair[] {
  const known = session.described?.searchAttributes ?? [];
  return attributesOf(session, 'active')
    .filter(([name]) => known.includes(name))
    .map(([name, value]) => ({ key: defineSearchAttributeKey(name, 'KEYWORD'), value }));
}

/** The result while the sub-agent's session is open. It reports a task queue without workers: nobody else would. */
async function waiting({ client, info }: Own, agent: string, taskQueue: string): Promise<AttachResult> {
  // This worker polls its own task queue.
  if (taskQueue === info.taskQueue || (await isPolled(client, taskQueue).catch(() => true)))
    return { kind: 'waiting' };
  const reason = `${agent} waits for a worker: none polls task queue ${taskQueue}. Start one there, or cancel`;
  return { kind: 'waiting', person: { kind: 'stuck', reason, taskQueue } };
}

type Own = Pick<Context, 'client' | 'info'>;

/** Reads from the sub-agent's history how it has ended, if it has. */
async function look(
  { client, info }: Own,
  { sessionId, agent, parent }: ChildStart,
  { resultLimit = LIMIT.toolResult }: AttachInput,
): Promise<AttachResult> {
  const found = await client.workflow.getHandle(sessionId).describe().catch(goneIsNull);
  // The sub-agent has run, so do not start it again: its effects must not be repeated.
  if (found === null) return failed(`its session ${sessionId} has been deleted`);
  const taken = `the id ${sessionId} is taken by a workflow that is not the sub-agent of this call`;
  if (found.type !== WORKFLOW.session) return failed(taken);
  const { state, end } = await readChild(client, sessionId, found.runId);
  if (state.parent?.sessionId !== parent.sessionId || state.agent !== agent) return failed(taken);
  if (state.status.kind === 'active' && found.status.name === 'RUNNING')
    return waiting({ client, info }, agent, found.taskQueue);
  if (state.status.kind === 'active') {
    const output = `its session was ${found.status.name.toLowerCase().replaceAll('_', ' ')} from outside`;
    return { kind: 'ended', end: { ...end, status: 'failed', output } };
  }
  return { kind: 'ended', end: { ...end, output: recordable(end.output, resultLimit) } };
}

/** The `steer` activity: signals sub-agents. One that has ended needs no signal. */
export async function runSteer({ sessions, to, by, reason }: SteerInput): Promise<void> {
  const signal = { run: SIGNAL.resume, cancel: SIGNAL.cancel, pause: SIGNAL.pause, pause_now: SIGNAL.pause }[
    to
  ];
  const value = to === 'run' ? { by } : { by, reason, ...(to === 'pause_now' ? { now: true } : {}) };
  await beating(({ client }) =>
    Promise.all(sessions.map((id) => client.workflow.getHandle(id).signal(signal, value).catch(goneIsNull))),
  );
}

function goneIsNull(error: unknown): null {
  if (isGone(error)) return null;
  throw error;
}

function failed(output: string): AttachResult & { end: ChildEnd } {
  return { kind: 'ended', end: { status: 'failed', output } };
}

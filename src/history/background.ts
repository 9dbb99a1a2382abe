/** What a session's sub-agents in the background are doing. */
import type { Client } from '@temporalio/client';
import type { Child, TreeUsage } from '../contract/tree.ts';
import { usd } from '../session/budget.ts';
import { lastText, phaseOf } from '../session/state.ts';
import { usageOf } from '../session/sub-agents.ts';
import { pendingCalls } from '../session/views.ts';
import { isNotFound } from '../temporal/index.ts';
import { foldSession } from './fold-session.ts';

/** The status of one sub-agent, as the model sees it. */
export interface BackgroundStatus {
  session: string;
  agent: string;
  /** How it has ended, or `running`. */
  status: string;
  /** What it is doing. Absent: it has ended. */
  phase?: string;
  /** The calls that wait for a person. */
  waits_for_person?: string[];
  /** The beginning of its last text. */
  last_text?: string;
  /** What it and its own sub-agents have used. Absent: nobody knows. */
  used?: { turns: number; tool_calls: number; tokens: number; usd: number };
}

/**
 * Reads the sub-agents in the background of a session: the open ones, and those that have ended in its present run.
 *
 * @param only - the session id of the sub-agent to read; `undefined` reads all
 * @param textLength - how many characters of the last text to return
 */
export async function readBackground(
  client: Client,
  sessionId: string,
  { only, textLength }: { only?: string | undefined; textLength: number },
): Promise<BackgroundStatus[]> {
  const { children = [] } = await readNow(client, sessionId);
  const wanted = children.filter(
    (child) => child.background !== undefined && (only === undefined || child.sessionId === only),
  );
  return Promise.all(wanted.map((child) => readOne(client, child, textLength)));
}

async function readOne(client: Client, child: Child, textLength: number): Promise<BackgroundStatus> {
  const { sessionId: session, agent, end } = child;
  if (end !== undefined) return { session, agent, status: end.status, ...used(end.usage) };
  try {
    const state = await readNow(client, session);
    const waits = pendingCalls(state).map(({ tool, status }) => `${tool}: ${status.kind}`);
    return {
      session,
      agent,
      status: state.status.kind === 'active' ? 'running' : state.status.kind,
      phase: phaseOf(state),
      ...(waits.length > 0 ? { waits_for_person: waits } : {}),
      last_text: lastText(state).slice(0, textLength),
      ...used(usageOf(state)),
    };
  } catch (error) {
    if (isNotFound(error)) return { session, agent, status: 'running', phase: 'starting' };
    throw error;
  }
}

async function readNow(client: Client, sessionId: string): ReturnType<typeof foldSession> {
  const { runId } = await client.workflow.getHandle(sessionId).describe();
  return foldSession(client, sessionId, runId);
}

function used(usage: TreeUsage | undefined): Pick<BackgroundStatus, 'used'> {
  if (usage === undefined) return {};
  const { turns, toolCalls, inputTokens, outputTokens, nanoUsd } = usage;
  return { used: { turns, tool_calls: toolCalls, tokens: inputTokens + outputTokens, usd: usd(nanoUsd) } };
}

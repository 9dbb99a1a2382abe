/** A session's checkpoints as session-checkpoint records. */

import { sessionStateOf, wholeStateOf } from '../../checkpoints/session-state.ts';
import { isFinal } from '../../contract/calls.ts';
import type { Checkpoint } from '../../contract/checkpoint.ts';
import { invalid } from '../../contract/errors.ts';
import { canonicalJson, defined } from '../../contract/json.ts';
import type { Block, Message } from '../../contract/messages.ts';
import type { SessionState } from '../../contract/state.ts';
import { usd } from '../../session/budget.ts';
import { batchCalls, openChildren, toolOf } from '../../session/state.ts';
import { childOf } from '../../session/sub-agents.ts';
import type {
  AgentCheckpoint,
  ConstraintState,
  PendingDelegation,
  SessionCheckpoint,
  TranscriptEvent,
} from './session-record.ts';
import { tailOf } from './session-record.ts';

const MINUTE_MS = 60_000;
/** The share of a cap at which a session counts as approaching it. */
const APPROACHING = 0.8;

export interface SessionCheckpointOptions {
  /** The most transcript entries that an agent is shown again. Default: 50. */
  transcriptReplayDepth?: number;
  /** What must be reached before the session may end. Default: nothing. */
  minimum?: { minutes?: number; usd?: number; rounds?: number };
  /** What the agent has learned. Default: the files of its scratchpad, each after its name. */
  expertiseSnapshot?: string;
}

/**
 * Converts a checkpoint to a session-checkpoint record. Spent budget and rounds continue over a pause. Only active time
 * counts.
 *
 * @throws PerdureError `CHECKPOINT_CORRUPTION` when the checkpoint is not a session's; `INVALID_ARGUMENT` when an
 * earlier run may hold entries of an open agent (pass the result of `wholeCheckpoint`), or when the depth is not a
 * number of entries.
 */
export function sessionCheckpoint(
  checkpoint: Checkpoint,
  options: SessionCheckpointOptions = {},
): SessionCheckpoint {
  const { transcriptReplayDepth: depth = 50, minimum = {} } = options;
  if (!Number.isSafeInteger(depth) || depth < 0)
    throw invalid('transcriptReplayDepth', 'write a whole number of entries, 0 or more');
  const state = sessionStateOf(checkpoint);
  const agents = activeAgents(state, depth, options);
  // The rest of a short tail may be in an earlier run.
  const isShort = agents.some(({ conversationTail }) => conversationTail.length < depth);
  return {
    sessionId: state.sessionId,
    constraintState: constraints(state, checkpoint.created_at, minimum),
    activeAgents: isShort ? activeAgents(wholeStateOf(checkpoint), depth, options) : agents,
    roundsCompleted: state.budget.spent.turns,
    pendingDelegations: delegations(state),
    transcriptReplayDepth: depth,
    createdAt: checkpoint.created_at,
  };
}

/**
 * The agent of an open session, and its open sub-agents. Their own messages are in their own sessions. The tails hold
 * what this session says about them.
 */
function activeAgents(
  state: SessionState,
  depth: number,
  { expertiseSnapshot = scratchpadText(state) }: SessionCheckpointOptions,
): AgentCheckpoint[] {
  if (state.status.kind !== 'active') return [];
  // The record holds what was said: the messages that a summary replaces, not the summary.
  const said = state.transcript.filter(({ summary }) => summary === undefined);
  const entries = said.map((message) => entryOf(message, state));
  const own = state.parent?.depth ?? 0;
  return [
    {
      agentId: state.agent,
      ...defined({ parentAgentId: state.parent?.path.at(-1) }),
      depth: own,
      conversationTail: tailOf(entries, state.agent, depth),
      ...defined({ expertiseSnapshot }),
    },
    ...openChildren(state).map(({ agent }) => ({
      agentId: agent,
      parentAgentId: state.agent,
      depth: own + 1,
      conversationTail: tailOf(entries, agent, depth),
    })),
  ];
}

/** Calls to sub-agents whose session has not been started. */
function delegations(state: SessionState): PendingDelegation[] {
  return batchCalls(state).flatMap((call) => {
    const target = toolOf(state, call)?.agent?.name;
    if (target === undefined || isFinal(call) || childOf(state, call) !== undefined) return [];
    const { task } = (call.args ?? {}) as { task?: unknown };
    return [
      { target, message: typeof task === 'string' ? task : canonicalJson(call.args), round: call.turn },
    ];
  });
}

function scratchpadText({ scratchpad = {} }: SessionState): string | undefined {
  const files = Object.entries(scratchpad).map(([path, text]) => `# ${path}\n${text}`);
  return files.length === 0 ? undefined : files.join('\n\n');
}

/** A pause or resume. Each cycle has one of each, however often it was requested. */
export interface PauseEvent {
  type: 'session_paused' | 'session_resumed';
  at: string;
  /** Who paused or resumed it. A resume that an earlier version recorded names who paused it. */
  by: string;
}

/**
 * The pauses and resumes of a session up to a checkpoint.
 *
 * @throws PerdureError `CHECKPOINT_CORRUPTION`; `INVALID_ARGUMENT` when earlier runs hold part of them: pass the result
 * of `wholeCheckpoint`
 */
export function pauseEvents(checkpoint: Checkpoint): PauseEvent[] {
  return wholeStateOf(checkpoint).pauses.flatMap(
    ({ pausedAt, resumedAt, by, resumedBy = by }): PauseEvent[] => [
      { type: 'session_paused', at: pausedAt, by },
      ...(resumedAt === null ? [] : [{ type: 'session_resumed' as const, at: resumedAt, by: resumedBy }]),
    ],
  );
}

function constraints(
  { budget, activeSince }: SessionState,
  at: string,
  minimum: NonNullable<SessionCheckpointOptions['minimum']>,
): ConstraintState {
  const { limits, spent } = budget;
  const running = activeSince === null ? 0 : Math.max(0, Date.parse(at) - Date.parse(activeSince));
  const activeMs = spent.activeMs + running;
  const dollars = usd(spent.nanoUsd);
  const share = (used: number, cap: number | undefined): number => {
    if (cap === undefined) return 0;
    return cap > 0 ? used / cap : 1;
  };
  const shares = {
    time: share(activeMs, limits.activeMs),
    budget: share(dollars, limits.usd),
    rounds: share(spent.turns, limits.turns),
    tool_calls: share(spent.toolCalls, limits.toolCalls),
    tokens: share(spent.inputTokens + spent.outputTokens, limits.tokens),
  };
  const hit = (Object.keys(shares) as (keyof typeof shares)[]).find((name) => shares[name] >= 1) ?? null;
  const past = {
    past_min_time: activeMs >= (minimum.minutes ?? 0) * MINUTE_MS,
    past_min_budget: dollars >= (minimum.usd ?? 0),
    past_min_rounds: spent.turns >= (minimum.rounds ?? 0),
  };
  return {
    elapsed_minutes: activeMs / MINUTE_MS,
    budget_spent: dollars,
    rounds_completed: spent.turns,
    ...past,
    approaching_max_time: shares.time >= APPROACHING,
    approaching_max_budget: shares.budget >= APPROACHING,
    approaching_max_rounds: shares.rounds >= APPROACHING,
    hit_maximum: hit !== null,
    hit_reason: hit,
    can_end: past.past_min_time && past.past_min_budget && past.past_min_rounds,
  };
}

function entryOf(
  { id, role, created_at, blocks, report }: Message,
  { agent, manifest }: SessionState,
): TranscriptEvent {
  const named = (kind: 'tool_call' | 'tool_result'): string[] =>
    blocks.flatMap((block) => (block.kind === kind ? (manifest?.tools[block.name]?.agent?.name ?? []) : []));
  const [childAgentId = report?.agent] = named('tool_result');
  const targets = named('tool_call');
  return {
    id,
    at: created_at,
    agentId: agent,
    ...defined({ childAgentId }),
    ...(targets.length === 0 ? {} : { delegationTargets: targets }),
    role,
    text: blocks.map(words).join('\n'),
  };
}

function words(block: Block): string {
  switch (block.kind) {
    case 'text':
    case 'reasoning':
      return block.text;
    case 'file':
      return `[${block.filename ?? block.media_type}]`;
    case 'source':
      return `[${block.title ?? block.url ?? block.id}]`;
    case 'tool_call':
      return `${block.name}(${canonicalJson(block.args)})`;
    case 'tool_result':
      return `${block.name} ${block.is_error ? 'failed' : 'returned'}: ${canonicalJson(block.content)}`;
    default:
      return block satisfies never;
  }
}

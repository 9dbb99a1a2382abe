/** The session-checkpoint record, its reader, and the text that tells an agent about it. */
import * as z from 'zod';
import { PerdureError } from '../../contract/errors.ts';

/** An entry of the transcript, with the agents that it concerns. */
export interface TranscriptEvent {
  /** Id of the message in the session's transcript. */
  id: string;
  at: string;
  agentId: string;
  childAgentId?: string;
  delegationTargets?: string[];
  role: 'user' | 'assistant' | 'tool';
  text: string;
}

export interface AgentCheckpoint {
  agentId: string;
  parentAgentId?: string;
  /** Nesting: 0 for an agent that no other has called. */
  depth: number;
  conversationTail: TranscriptEvent[];
  /** The content of its scratchpad, if it has one. */
  expertiseSnapshot?: string;
}

/** What a session has spent of its caps. */
export interface ConstraintState {
  /** Active time: a model or tool call was in flight. */
  elapsed_minutes: number;
  /** US dollars. */
  budget_spent: number;
  rounds_completed: number;
  past_min_time: boolean;
  past_min_budget: boolean;
  past_min_rounds: boolean;
  /** At 80 % of a cap or more. */
  approaching_max_time: boolean;
  approaching_max_budget: boolean;
  approaching_max_rounds: boolean;
  /** At 100 % of any cap. */
  hit_maximum: boolean;
  hit_reason: 'time' | 'budget' | 'rounds' | 'tool_calls' | 'tokens' | null;
  can_end: boolean;
}

/** A call to a sub-agent whose session has not been started. */
export interface PendingDelegation {
  target: string;
  message: string;
  round: number;
}

export interface SessionCheckpoint {
  sessionId: string;
  constraintState: ConstraintState;
  activeAgents: AgentCheckpoint[];
  roundsCompleted: number;
  pendingDelegations: PendingDelegation[];
  /** The most transcript entries that each agent is shown again. */
  transcriptReplayDepth: number;
  createdAt: string;
}

const text: z.ZodType<string> = z.string();
const count: z.ZodType<number> = z.int().nonnegative();
const amount: z.ZodType<number> = z.number().nonnegative();

const transcriptEvent: z.ZodType<TranscriptEvent> = z.strictObject({
  id: text,
  at: text,
  agentId: text,
  childAgentId: z.exactOptional(text),
  delegationTargets: z.exactOptional(z.array(text)),
  role: z.enum(['user', 'assistant', 'tool']),
  text,
});

const agentCheckpoint: z.ZodType<AgentCheckpoint> = z.strictObject({
  agentId: text,
  parentAgentId: z.exactOptional(text),
  depth: count,
  conversationTail: z.array(transcriptEvent),
  expertiseSnapshot: z.exactOptional(text),
});

const constraintState: z.ZodType<ConstraintState> = z.strictObject({
  elapsed_minutes: amount,
  budget_spent: amount,
  rounds_completed: count,
  past_min_time: z.boolean(),
  past_min_budget: z.boolean(),
  past_min_rounds: z.boolean(),
  approaching_max_time: z.boolean(),
  approaching_max_budget: z.boolean(),
  approaching_max_rounds: z.boolean(),
  hit_maximum: z.boolean(),
  hit_reason: z.nullable(z.enum(['time', 'budget', 'rounds', 'tool_calls', 'tokens'])),
  can_end: z.boolean(),
});

const sessionCheckpoint: z.ZodType<SessionCheckpoint> = z.strictObject({
  sessionId: z.string().min(1),
  constraintState,
  activeAgents: z.array(agentCheckpoint),
  roundsCompleted: count,
  pendingDelegations: z.array(z.strictObject({ target: text, message: text, round: count })),
  transcriptReplayDepth: count,
  createdAt: text,
});

/** Reads a record that comes from elsewhere. @throws PerdureError `CHECKPOINT_CORRUPTION` with the field */
export function readSessionCheckpoint(value: unknown): SessionCheckpoint {
  const result = sessionCheckpoint.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new PerdureError(
    'CHECKPOINT_CORRUPTION',
    `Cannot resume: the session checkpoint is malformed at ${issue?.path.join('.') || 'its top'}: ${issue?.message ?? ''}`,
  );
}

/**
 * The last `depth` entries that an agent wrote, that are about it as a child, or that delegate to it by its exact id.
 */
export function tailOf(
  entries: readonly TranscriptEvent[],
  agentId: string,
  depth: number,
): TranscriptEvent[] {
  if (depth <= 0) return [];
  return entries
    .filter(
      (entry) =>
        entry.agentId === agentId ||
        entry.childAgentId === agentId ||
        entry.delegationTargets?.includes(agentId) === true,
    )
    .slice(-depth);
}

/** The text for an agent whose session is resumed: a heading and its conversation tail. Empty without a tail. */
export function resumedSection({ conversationTail }: AgentCheckpoint): string {
  if (conversationTail.length === 0) return '';
  const lines = conversationTail.map(({ at, role, text: said }) => `[${at}] ${role}: ${said}`);
  return [
    '## Session Context (Resumed)',
    '',
    'This session was paused and goes on now. This is the last of what you took part in:',
    '',
    ...lines,
  ].join('\n');
}

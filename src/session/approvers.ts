/** Approvals that take several people, or a person other than the one who asked. */
import { type ApproverRules, type DecisionRecord, type ToolCall, UNNAMED } from '../contract/calls.ts';
import type { DecideInput } from '../contract/inputs.ts';
import type { ToolManifest } from '../contract/manifest.ts';
import type { SessionState } from '../contract/state.ts';
import type { PendingCall } from '../contract/views.ts';

/** Why a person's decision does not count. */
export interface NotAllowed {
  message: string;
  details: { callId: string; reason: 'unverified' | 'author' | 'same_person' };
}

/** The rules of a call that is about to ask for approval. The call keeps them when the agent changes. */
export function rulesOf(tool: ToolManifest | undefined): Pick<ToolCall, 'approvers'> {
  const { people, byAnother, unverified } = tool?.approval ?? {};
  if (people === undefined && byAnother === undefined) return {};
  const approvers: ApproverRules = { people: people ?? 1, given: [] };
  if (byAnother === true) approvers.byAnother = true;
  if (unverified === true) approvers.unverified = true;
  return { approvers };
}

/** When an approval that is asked for now expires. */
export function expiryFrom(tool: ToolManifest | undefined, at: string): { expiresAt: string | null } {
  const expiresMs = tool?.approval.expiresMs ?? null;
  return { expiresAt: expiresMs === null ? null : new Date(Date.parse(at) + expiresMs).toISOString() };
}

/** Remembers who sent or edited messages: these people asked for the model's calls. */
export function addAuthor(state: SessionState, by: string | undefined): void {
  if (by === undefined || by === UNNAMED || state.authors?.includes(by) === true) return;
  state.authors = [...(state.authors ?? []), by];
}

/** Why a decision does not count, or `null`. Anybody may reject. */
export function approverProblem(
  { authors = [] }: SessionState,
  { id: callId, approvers }: ToolCall,
  { decision, by = UNNAMED, verified }: DecideInput,
): NotAllowed | null {
  if (approvers === undefined || decision.decision === 'reject') return null;
  const refuse = (reason: NotAllowed['details']['reason'], message: string): NotAllowed => ({
    message: `call ${callId} ${message}`,
    details: { callId, reason },
  });
  if (by === UNNAMED || (verified !== true && approvers.unverified !== true)) {
    const who = by === UNNAMED ? 'nobody gave a name' : `${by} is not verified`;
    return refuse(
      'unverified',
      `takes the decision of a verified person, and ${who}. Decide over HTTP with a token of your own`,
    );
  }
  if (approvers.byAnother === true && authors.includes(by)) {
    return refuse(
      'author',
      `takes the decision of somebody else: ${by} has sent or edited messages of this session`,
    );
  }
  if (decision.decision === 'approve' && approvers.given.some((given) => given.by === by)) {
    return refuse(
      'same_person',
      `has the approval of ${by} already, and takes ${approvers.people} people. Somebody else must approve it`,
    );
  }
  return null;
}

/** Records an approval, or an edit, which discards earlier approvals. @returns whether more people must approve */
export function takesMore({ approvers }: ToolCall, record: DecisionRecord): boolean {
  if (approvers === undefined || (record.decision !== 'approve' && record.decision !== 'edit')) return false;
  approvers.given = record.decision === 'edit' ? [record] : [...approvers.given, record];
  return approvers.given.length < approvers.people;
}

/** Whether some people have approved these arguments, but not enough. */
export function isPartly({ approvers }: ToolCall): boolean {
  return approvers !== undefined && approvers.given.length > 0 && approvers.given.length < approvers.people;
}

/** The rules as a person sees them. */
export function needsOf({ authors = [] }: SessionState, { approvers }: ToolCall): Pick<PendingCall, 'needs'> {
  if (approvers === undefined) return {};
  const { people, given, byAnother, unverified } = approvers;
  return {
    needs: {
      people,
      given,
      notBy: [...(byAnother === true ? authors : []), ...given.map(({ by }) => by)],
      verified: unverified !== true,
    },
  };
}

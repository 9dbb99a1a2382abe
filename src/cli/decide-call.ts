/** What approve, edit, reject, respond and resolve share: which call, what it is, and the answer. */
import type { Decision } from '../contract/calls.ts';
import { PerdureError } from '../contract/errors.ts';
import { command } from '../contract/shell.ts';
import type { PendingCall } from '../contract/views.ts';
import { sessionView } from '../session/views.ts';
import type { Cli } from './cli.ts';
import { readSession } from './read-session.ts';
import { clean, inline } from './terminal.ts';

const PAST = { approve: 'approved', edit: 'edited', reject: 'rejected', respond: 'answered' } as const;

/** A call that was named, or the only one that waits. */
export interface ChosenCall {
  callId: string;
  /** What is known of it; `undefined` when the session has no such call waiting. */
  pending: PendingCall | undefined;
  /** Of the arguments that were looked at; never the digest of arguments that nobody saw. */
  argsDigest: string;
}

/**
 * Chooses the call that a person means.
 *
 * @throws PerdureError `UNKNOWN_CALL` when no id was given and no call, or more than one, waits.
 */
export async function chooseCall(
  cli: Cli,
  sessionId: string,
  callId: string | undefined,
  kinds: readonly PendingCall['status']['kind'][],
): Promise<ChosenCall> {
  const { state, run } = await cli.terminal.wait(`reading ${sessionId}`, () => readSession(cli, sessionId));
  const all = sessionView(state).pending;
  if (callId !== undefined) {
    const pending = all.find((call) => call.callId === callId);
    const known = state.calls.findLast((call) => call.id === callId);
    return { callId, pending, argsDigest: known?.argsDigest ?? '' };
  }
  if (state.status.kind !== 'active' || run !== 'running') {
    throw new PerdureError('SESSION_CLOSED', `Session ${sessionId} is closed: none of its calls waits.`);
  }
  const waiting = all.filter(({ status }) => kinds.includes(status.kind));
  const [only] = waiting;
  if (only !== undefined && waiting.length === 1) {
    return { callId: only.callId, pending: only, argsDigest: only.argsDigest };
  }
  throw new PerdureError(
    'UNKNOWN_CALL',
    only === undefined
      ? `No call of session ${sessionId} waits for this.`
      : `${waiting.length} calls of session ${sessionId} wait; name one: ${waiting.map(({ callId, tool }) => `${callId} (${tool})`).join(', ')}`,
    { details: { waiting: waiting.map(({ callId, tool, args }) => ({ callId, tool, args })) } },
  );
}

/** Decides on a call as it was shown, and says what was decided. */
export async function decideCall(
  cli: Cli,
  sessionId: string,
  callId: string | undefined,
  decision: Decision,
  by: string | undefined,
): Promise<void> {
  const { terminal } = cli;
  const chosen = await chooseCall(cli, sessionId, callId, ['approval']);
  const session = await cli.session(sessionId);
  const { pending, argsDigest } = chosen;
  const actor = cli.actor(by);
  const { status } = await terminal.wait('deciding', () =>
    session.decide(chosen.callId, decision, { by: actor, argsDigest }),
  );
  const tool = pending?.tool ?? '';
  const args = pending?.args ?? null;
  const value = { sessionId, callId: chosen.callId, tool, args, argsDigest, ...decision, by: actor, status };
  // Of an edit, `args` are the new ones: those that ran, or wait.
  terminal.result(decision.decision === 'edit' ? { ...value, formerArgs: args } : value, () => {
    const lines = [
      `${PAST[decision.decision]} ${clean(chosen.callId)}  ${terminal.style('bold', clean(tool))} ${inline(args)}`,
    ];
    if (decision.decision === 'edit') lines.push(`  now ${inline(decision.args)}`);
    if (decision.decision === 'respond') lines.push(`  with ${inline(decision.output)}`);
    if (decision.decision === 'reject' && decision.reason !== undefined)
      lines.push(`  ${clean(decision.reason)}`);
    lines.push(`  by ${clean(actor)}; the call is ${status}`, `  next: ${clean(command('tail', sessionId))}`);
    return lines.join('\n');
  });
}

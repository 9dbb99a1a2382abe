/** What approve, edit, reject, respond and resolve share: which call, what it is, and the answer. */
import type { Decision } from '../contract/calls.ts';
import { PerdureError } from '../contract/errors.ts';
import type { JsonValue } from '../contract/json.ts';
import { command } from '../contract/shell.ts';
import type { PendingCall } from '../contract/views.ts';
import { sessionView } from '../session/views.ts';
import type { Cli } from './cli.ts';
import { EXIT } from './failures.ts';
import type { SeenOptions } from './input.ts';
import { readSession } from './read-session.ts';
import { boundTo } from './render.ts';
import { clean, inline } from './terminal.ts';

const PAST = { approve: 'approved', edit: 'edited', reject: 'rejected', respond: 'answered' } as const;

/** A call that was named, or the only one that waits. */
export interface ChosenCall {
  callId: string;
  /** As it was read; both `null` when no such call waits, which the session says itself. */
  tool: string | null;
  args: JsonValue;
  /**
   * What the decision is bound to: the digest of the arguments that waited when they were read. They are those that a
   * person saw when its digits were given, or the person was asked; not when a script named nothing but the call.
   */
  argsDigest: string;
}

/**
 * Chooses the call that a person means. Without the digits of a digest it is shown first, and the person asked; where
 * nobody can be asked, the call has to be named.
 *
 * @param verb - as it is typed, with the session and the call after it.
 * @param rest - what else has to be typed, after a space.
 * @returns `null` when the person has said no.
 * @throws PerdureError `UNKNOWN_CALL` when no id was given and no call, or more than one, waits; `DIGEST_MISMATCH` when
 * the digits are of other arguments; `INVALID_ARGUMENT` when nobody has said which call, and nobody can be asked.
 */
export async function chooseCall(
  cli: Cli,
  sessionId: string,
  named: string | undefined,
  { digest, yes }: SeenOptions,
  { verb, rest, kinds }: { verb: string; rest: string; kinds: readonly PendingCall['status']['kind'][] },
): Promise<ChosenCall | null> {
  const call = await waitingCall(cli, sessionId, named, kinds);
  // The session says what has become of it; should it wait by then, nobody has seen its arguments.
  if (call === null) return { callId: named ?? '', tool: null, args: null, argsDigest: digest ?? '' };
  const { callId, tool, args, argsDigest } = call;
  const chosen = { callId, tool, args, argsDigest };
  const next = `${boundTo(argsDigest, command(verb, sessionId, callId))}${rest}`;
  if (digest !== undefined) {
    if (argsDigest.startsWith(digest)) return chosen;
    const message = `${callId} is not the call that was seen. It is ${tool} ${inline(args)} now; to go on with this: ${next}`;
    throw new PerdureError('DIGEST_MISMATCH', message, { details: { ...chosen } });
  }
  if (yes) return chosen;
  if (cli.attended) {
    cli.terminal.error(`${clean(callId)}  ${cli.terminal.styleError('bold', clean(tool))} ${inline(args)}`);
    const word = await cli.ask(`${verb} this? [y/N] `);
    if (/^y(es)?$/i.test(word)) return chosen;
    cli.terminal.progress('nothing was decided');
    process.exitCode = EXIT.failure;
    return null;
  }
  if (named !== undefined) return chosen;
  throw new PerdureError(
    'INVALID_ARGUMENT',
    `No call was named, and nobody is here to be asked about ${tool} ${inline(args)}: ${next}`,
    { details: { ...chosen } },
  );
}

/** The call as it waits, or `null` when it was named and does not. */
async function waitingCall(
  cli: Cli,
  sessionId: string,
  named: string | undefined,
  kinds: readonly PendingCall['status']['kind'][],
): Promise<PendingCall | null> {
  const { state, run } = await cli.terminal.wait(`reading ${sessionId}`, () => readSession(cli, sessionId));
  const waiting = sessionView(state).pending.filter(({ status }) => kinds.includes(status.kind));
  if (named !== undefined) return waiting.find(({ callId }) => callId === named) ?? null;
  if (state.status.kind !== 'active' || run !== 'running') {
    throw new PerdureError('SESSION_CLOSED', `Session ${sessionId} is closed: none of its calls waits.`);
  }
  const [only] = waiting;
  if (only !== undefined && waiting.length === 1) return only;
  throw new PerdureError(
    'UNKNOWN_CALL',
    only === undefined
      ? `No call of session ${sessionId} waits for this.`
      : `${waiting.length} calls of session ${sessionId} wait; name one: ${waiting.map(({ callId, tool }) => `${callId} (${tool})`).join(', ')}`,
    {
      details: {
        waiting: waiting.map(({ callId, tool, args, argsDigest }) => ({ callId, tool, args, argsDigest })),
      },
    },
  );
}

/** What has to be typed besides the call. */
const REST = {
  approve: '',
  edit: ' --args <json>',
  reject: '',
  respond: ' --output <json|text>',
} as const;

/** Decides on a call with the arguments that it had when it was read, and says what was decided. */
export async function decideCall(
  cli: Cli,
  sessionId: string,
  named: string | undefined,
  decision: Decision,
  options: SeenOptions,
): Promise<void> {
  const { terminal } = cli;
  const verb = decision.decision;
  const chosen = await chooseCall(cli, sessionId, named, options, {
    verb,
    rest: REST[verb],
    kinds: ['approval'],
  });
  if (chosen === null) return;
  const session = await cli.session(sessionId);
  const { callId, tool, args, argsDigest } = chosen;
  const by = cli.actor(options.by);
  const { status } = await terminal.wait('deciding', () =>
    session.decide(callId, decision, { by, argsDigest }),
  );
  const value = { sessionId, ...chosen, ...decision, by, status };
  // Of an edit, `args` are the new ones: those that ran, or wait.
  terminal.result(decision.decision === 'edit' ? { ...value, formerArgs: args } : value, () => {
    const lines = [
      `${PAST[verb]} ${clean(callId)}  ${terminal.style('bold', clean(tool ?? ''))} ${inline(args)}`,
    ];
    if (decision.decision === 'edit') lines.push(`  now ${inline(decision.args)}`);
    if (decision.decision === 'respond') lines.push(`  with ${inline(decision.output)}`);
    if (decision.decision === 'reject' && decision.reason !== undefined)
      lines.push(`  ${clean(decision.reason)}`);
    lines.push(`  by ${clean(by)}; the call is ${status}`, `  next: ${clean(command('tail', sessionId))}`);
    return lines.join('\n');
  });
}

/** Finds the call that approve, edit, reject, respond and resolve mean, and asks for confirmation. */
import type { Decision, SeenDispatch } from '../contract/calls.ts';
import { PerdureError } from '../contract/errors.ts';
import type { JsonValue } from '../contract/json.ts';
import type { PendingCall } from '../contract/views.ts';
import { command, commandsFor, SHOWN_DIGITS } from '../session/commands.ts';
import type { Cli } from './cli.ts';
import { EXIT } from './failures.ts';
import type { SeenOptions } from './input.ts';
import { clean, inline } from './terminal.ts';

/** The most characters of a value that a confirmation repeats. */
const BRIEF = 300;

const PAST = { approve: 'approved', edit: 'edited', reject: 'rejected', respond: 'answered' } as const;

export interface ChosenCall extends SeenDispatch {
  /** `null` when no such call waits: the session itself then refuses. */
  tool: string | null;
  args: JsonValue;
}

/** A digest that no call has: the session refuses it. */
const UNSEEN = 'unseen';

interface Waiting {
  call: ChosenCall;
  /** Commands for the next step of a call that waits. */
  commands: readonly string[] | null;
}

/** The call that a person means, compared with what they have seen. */
async function findCall(
  cli: Cli,
  sessionId: string,
  named: string | undefined,
  { digest, dispatch }: SeenOptions,
  kinds: readonly PendingCall['status']['kind'][],
): Promise<Waiting> {
  const found = await waitingCall(cli, sessionId, named, kinds);
  if (found === null) {
    const seen = { argsDigest: digest ?? UNSEEN, dispatchNo: dispatch ?? 0 };
    return { call: { callId: named ?? '', ...seen, tool: null, args: null }, commands: null };
  }
  const { callId, tool, args, argsDigest, dispatchNo } = found;
  const call = { callId, tool, args, argsDigest, dispatchNo };
  const commands = commandsFor(found.next);
  const otherArgs = digest !== undefined && !argsDigest.startsWith(digest);
  if (otherArgs || (dispatch !== undefined && dispatch !== dispatchNo)) {
    const message = otherArgs
      ? `The arguments of ${callId} have changed. It is now ${tool} ${inline(args)}`
      : `${callId} is now at dispatch ${dispatchNo}, not ${dispatch}`;
    throw new PerdureError(otherArgs ? 'DIGEST_MISMATCH' : 'DISPATCH_MISMATCH', message, {
      details: { ...call },
    });
  }
  return { call, commands };
}

/**
 * Chooses the call of a decision. Without a digest, it shows the call and asks for confirmation. Without a terminal,
 * the call must be named.
 *
 * @returns `null` when the person says no.
 * @throws PerdureError `UNKNOWN_CALL` when no id is given and not exactly one call waits; `DIGEST_MISMATCH` when the
 * arguments have changed; `INVALID_ARGUMENT` when no call is named and there is no terminal.
 */
async function chooseCall(
  cli: Cli,
  sessionId: string,
  named: string | undefined,
  options: SeenOptions,
  decision: Decision,
): Promise<ChosenCall | null> {
  const verb = decision.decision;
  const { call, commands } = await findCall(cli, sessionId, named, options, ['approval']);
  if (commands === null || options.digest !== undefined || options.yes) return call;
  if (cli.attended) {
    show(cli, call);
    for (const line of decided(decision)) cli.terminal.error(line);
    const record = `Record ${verb} of ${clean(call.callId)} by ${clean(cli.actor(options.by))}`;
    if (/^y(es)?$/i.test(await cli.ask(`${record}? [y/N] `))) return call;
    return nothingDone(cli);
  }
  if (named !== undefined) return call;
  throw unasked(
    call,
    commands.filter((each) => each.startsWith(`perdure ${verb} `)),
  );
}

/**
 * Chooses the call of a resolution, and asks for what was not given: the outcome, or a confirmation of the dispatch.
 * Without a terminal, the digest, the dispatch and the outcome must be given.
 *
 * @returns `null` when the person says no.
 * @throws PerdureError `UNKNOWN_CALL`; `DIGEST_MISMATCH` and `DISPATCH_MISMATCH` when the arguments or the dispatch
 * have changed; `INVALID_ARGUMENT` when something is missing and there is no terminal.
 */
export async function chooseOpenCall(
  cli: Cli,
  sessionId: string,
  named: string | undefined,
  options: SeenOptions,
  outcome: string | undefined,
): Promise<{ call: ChosenCall; outcome: string } | null> {
  const { call, commands } = await findCall(cli, sessionId, named, options, ['unknown', 'stuck']);
  const seen = options.digest !== undefined && options.dispatch !== undefined;
  if (outcome !== undefined && (seen || commands === null)) return { call, outcome };
  if (commands !== null && !cli.attended)
    throw unasked(
      call,
      commandsFor({
        action: 'resolve',
        sessionId,
        callId: call.callId,
        argsDigest: call.argsDigest,
        dispatchNo: call.dispatchNo,
      }),
    );
  if (commands !== null) show(cli, call);
  if (outcome === undefined) {
    const word = cli.attended
      ? await cli.ask(`What became of dispatch ${call.dispatchNo}: landed, absent or failed? `)
      : '';
    return word === '' ? nothingDone(cli) : { call, outcome: word };
  }
  const says = `${clean(cli.actor(options.by))} says that dispatch ${call.dispatchNo} ${SAID[outcome] ?? outcome}`;
  const sure = await cli.ask(`Record that ${says}? [y/N] `);
  return /^y(es)?$/i.test(sure) ? { call, outcome } : nothingDone(cli);
}

const SAID: Readonly<Record<string, string>> = {
  landed: 'happened',
  absent: 'did not happen, and run the call again',
  failed: 'failed, and tell the model',
};

function show({ terminal }: Cli, { callId, tool, args, argsDigest }: ChosenCall): void {
  terminal.error(`${clean(callId)}  ${terminal.styleError('bold', clean(tool ?? ''))} ${inline(args)}`);
  terminal.error(`  digest ${shownDigest(argsDigest)}`);
}

/** The first digits of a digest, as commands print them, for people to compare. */
export function shownDigest(argsDigest: string): string {
  return clean(argsDigest.slice(0, SHOWN_DIGITS));
}

/** What a decision adds to the call: new arguments, an answer, or a reason. */
function decided(decision: Decision): string[] {
  switch (decision.decision) {
    case 'approve':
      return [];
    case 'edit':
      return [`  now ${inline(decision.args, BRIEF)}`];
    case 'respond':
      return [`  with ${inline(decision.output, BRIEF)}`];
    case 'reject':
      return decision.reason === undefined ? [] : [`  because ${clean(decision.reason).slice(0, BRIEF)}`];
  }
}

function nothingDone(cli: Cli): null {
  cli.terminal.progress('nothing was decided');
  process.exitCode = EXIT.failure;
  return null;
}

function unasked(call: ChosenCall, commands: readonly string[]): PerdureError {
  const said = `Nobody can confirm ${call.callId}, ${call.tool} ${inline(call.args)}: this is not a terminal. Name the digest`;
  return new PerdureError('INVALID_ARGUMENT', said, {
    details: { ...call, commands },
  });
}

/** The waiting call, or `null` when the named call does not wait. */
async function waitingCall(
  cli: Cli,
  sessionId: string,
  named: string | undefined,
  kinds: readonly PendingCall['status']['kind'][],
): Promise<PendingCall | null> {
  const session = await cli.session(sessionId);
  const { view } = await cli.terminal.wait(`reading ${sessionId}`, () => session.read());
  const waiting = view.pending.filter(({ status }) => kinds.includes(status.kind));
  if (named !== undefined) return waiting.find(({ callId }) => callId === named) ?? null;
  if (view.status.kind !== 'active') {
    throw new PerdureError('SESSION_CLOSED', `Session ${sessionId} is closed: no call waits for a decision`);
  }
  const [only] = waiting;
  if (only !== undefined && waiting.length === 1) return only;
  throw new PerdureError(
    'UNKNOWN_CALL',
    only === undefined
      ? `No call of session ${sessionId} waits for this`
      : `${waiting.length} calls of session ${sessionId} wait; name one: ${waiting.map(({ callId, tool }) => `${callId} (${tool})`).join(', ')}`,
    {
      details: {
        waiting: waiting.map(({ callId, tool, args, argsDigest }) => ({ callId, tool, args, argsDigest })),
      },
    },
  );
}

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
  const chosen = await chooseCall(cli, sessionId, named, options, decision);
  if (chosen === null) return;
  const session = await cli.session(sessionId);
  const { callId, tool, args, argsDigest } = chosen;
  const by = cli.actor(options.by);
  const { status } = await terminal.wait('deciding', () =>
    session.decide({ callId, argsDigest }, decision, { by }),
  );
  const value = { sessionId, ...chosen, ...decision, by, status };
  // After an edit, `args` are the new arguments.
  terminal.result(verb === 'edit' ? { ...value, formerArgs: args } : value, () =>
    [
      `${PAST[verb]} ${clean(callId)}  ${terminal.style('bold', clean(tool ?? ''))} ${inline(args, BRIEF)}`,
      ...decided(decision),
      `  recorded: ${verb} by ${clean(by)} for digest ${shownDigest(argsDigest)}; the call is ${status}`,
      `  next: ${clean(command('tail', sessionId))}`,
    ].join('\n'),
  );
}

/** The judge compares what a run claims with what has happened. It is pure, so that tests can give it invented runs. */
import type { ToolCall } from 'perdure';
import { LOST } from '../src/contract/failure.ts';
import { largeProblems } from './large.ts';
import { type Claim, unexplained } from './linearize.ts';
import type { Observed, ObservedSession } from './observe.ts';
import type { FaultPoint } from './points/point.ts';
import { callTags, isKeyOf, MORE, REPLY_NANO_USD, type ToolKind } from './story.ts';
import { treeProblems } from './trees.ts';

/** What can be wrong with a run. */
export type Breach =
  /** The fault did not land: there is no evidence of it. */
  | 'not-landed'
  /** More than one effect where one was requested. */
  | 'duplicate'
  /** Claimed as done but not in the ledger, or claimed as not done but in the ledger. */
  | 'loss'
  /** A call that its session had to complete was given up, whether the session says so or not. */
  | 'not-done'
  /** No order of the claims and the ledger rows of a key amounts to one effect. */
  | 'not-linearizable'
  /** A recorded reply was paid for again. */
  | 'paid-twice'
  /** The spent amount is not the cost of the replies plus the worst case of the lost replies. */
  | 'budget'
  | 'message-lost'
  | 'message-twice'
  /** The session is neither at rest nor visibly waiting, or it did not make a call that it had to make. */
  | 'stuck'
  /** The outcome of a call that nobody can verify was decided without a person. */
  | 'without-person'
  /** A large value is neither whole, nor shortened with a notice, nor refused. */
  | 'cut'
  /** The history does not fold to the live state. */
  | 'fold'
  /** The run could not be completed. */
  | 'error';

export interface Finding {
  readonly breach: Breach;
  readonly kind: ToolKind | null;
  readonly text: string;
  /** Why the docs allow the finding. `null`: it breaks a guarantee. */
  readonly allowed: 'gap' | 'repeatable' | null;
}

/** What a point declares of its fault: see {@link FaultPoint}. */
type Declared = Pick<FaultPoint, 'overtakes' | 'fails' | 'unseen'>;

/** Judges a run. */
export function judge(
  observed: Observed,
  { overtakes = false, fails = [], unseen = 0 }: Declared,
): Finding[] {
  const findings: Finding[] = [];
  const gap = overtakes && observed.story.step === 'gap' && observed.story.keys === 'ignored';
  const modelGap = overtakes && observed.story.step === 'asking' ? 'gap' : null;
  if (observed.error !== null) {
    findings.push({ breach: 'error', kind: null, text: observed.error, allowed: null });
  }
  const effects = new Set<string>();
  for (const session of observed.sessions) {
    const { kind } = session.task;
    const add = (breach: Breach, text: string, allowed: Finding['allowed'] = null): void => {
      findings.push({ breach, kind, text: `${session.task.session}: ${text}`, allowed });
    };
    if (session.landed === null) add('not-landed', 'the fault did not land');
    judgeRest(session, add);
    // If the history cannot be folded, nothing more is known about the session.
    if (session.state === null && session.foldDiffers.length > 0) continue;
    judgeMessages(session, add);
    judgeMoney(observed, session, { unseen, modelGap }, add);
    for (const [breach, problem] of treeProblems(observed, session)) add(breach, problem);
    const turns = session.task.turns + (session.acknowledged.includes(MORE) ? 1 : 0);
    for (const tag of Array.from({ length: turns }, (_, i) => callTags(session.task, i + 1)).flat()) {
      const call = session.state?.calls.find(({ args }) => (args as { tag?: unknown } | null)?.tag === tag);
      if (call === undefined) {
        add('stuck', `it never made its call ${tag}`);
        continue;
      }
      // Such a call delegates: its result is compared with the sub-agent's answer.
      if (session.task.below !== undefined) continue;
      if (kind === 'blind') judgePerson(call, add);
      if (session.task.mode === 'large') judgeLarge(observed, session, call, add);
      judgeLoss(observed, call, tag, add);
      if (!fails.includes(kind)) judgeDone(observed, call, { kind, tag }, add);
      if (effects.has(tag)) continue;
      effects.add(tag);
      judgeEffect(observed, { call, tag, kind, gap }, add);
    }
  }
  return findings;
}

type Add = (breach: Breach, text: string, allowed?: Finding['allowed']) => void;

function judgeRest({ restedAt, lastPhase, foldDiffers }: ObservedSession, add: Add): void {
  if (restedAt === null) add('stuck', `it did not come to rest; last seen ${lastPhase ?? 'never'}`);
  if (foldDiffers.length > 0)
    add('fold', `its history does not fold to its live state: ${foldDiffers.join('; ')}`);
}

function judgeMessages({ acknowledged, state }: ObservedSession, add: Add): void {
  const ids = (state?.transcript ?? [])
    .filter(({ role, summary }) => role === 'user' && summary === undefined)
    .map(({ id }) => id);
  for (const id of new Set([...acknowledged, ...ids])) {
    const times = ids.filter((each) => each === id).length;
    if (times === 0) add('message-lost', `message ${id} was acknowledged and is not in the transcript`);
    if (times > 1) add('message-twice', `message ${id} is ${times} times in the transcript`);
  }
}

function judgeMoney(
  { model }: Observed,
  { task, state, flights }: ObservedSession,
  { unseen, modelGap }: { unseen: number; modelGap: Finding['allowed'] },
  add: Add,
): void {
  if (state === null) return;
  const replies = state.transcript.filter(({ role }) => role === 'assistant');
  const billed = model.filter(
    ({ session, outcome }) => session === task.session && (outcome === 'reply' || outcome === 'fault:cut'),
  );
  for (const { position, at } of billed) {
    const recorded = replies[position]?.created_at;
    if (recorded !== undefined && Date.parse(at) > Date.parse(recorded)) {
      const text = `reply ${position} was on record at ${recorded} and paid for again at ${at}`;
      add('paid-twice', text, modelGap);
    }
  }
  let lost = 0;
  let workerLost = 0;
  for (const { reserved, replied, charged, lost: withWorker } of flights) {
    if (!replied && charged === reserved && reserved > 0) {
      lost += 1;
      if (withWorker) workerLost += 1;
    } else if (charged !== (replied ? REPLY_NANO_USD : 0)) {
      add(
        'budget',
        `a model call was charged ${charged}, of ${reserved} reserved, ${replied ? 'with' : 'without'} a reply`,
      );
    }
  }
  const summaries = state.transcript.filter(({ summary }) => summary !== undefined);
  const paidUnrecorded = billed.length - replies.length - summaries.length;
  if (paidUnrecorded > lost) {
    add(
      'budget',
      `${billed.length} requests were billed, ${replies.length} replies recorded and ${lost} charged as lost`,
    );
  }
  // A call whose worker was lost is charged, although nobody knows whether it was sent. Any other lost call was sent.
  if (lost - workerLost > Math.max(0, paidUnrecorded) + unseen) {
    add(
      'budget',
      `${lost} requests were charged as lost, ${workerLost} with their worker; ${billed.length} were billed, ${replies.length} replies recorded`,
    );
  }
  const sum = flights.reduce((total, { charged }) => total + charged, 0);
  if (sum !== state.budget.spent.nanoUsd)
    add('budget', `spent is ${state.budget.spent.nanoUsd}, its calls were charged ${sum}`);
  if (state.budget.reserved.nanoUsd !== 0)
    add('budget', `${state.budget.reserved.nanoUsd} are still reserved at rest`);
}

function judgeLarge({ model }: Observed, { task, state }: ObservedSession, call: ToolCall, add: Add): void {
  for (const problem of largeProblems(task.kind, state?.transcript ?? [], call)) add('cut', problem);
  const answers = model.filter(
    ({ session, position }) => session === task.session && position === task.turns,
  );
  if (answers.length < 2) add('not-landed', 'the model has given no answer over the limit');
}

function judgePerson(call: ToolCall, add: Add): void {
  // The tool has no verify: only a person can say that the call landed, or that it did not if the tool could not know.
  const known = new RegExp(`^(${call.name}|fence) failed: |^its worker was shut down|^${LOST.unbegun}: `);
  const open = call.dispatches.some(
    ({ outcome, reason = '' }) =>
      outcome === 'unknown' || outcome === 'landed' || (outcome === 'absent' && !known.test(reason)),
  );
  if (open && call.resolutions.length === 0)
    add('without-person', `${call.id} was open and is ${call.status.kind}`);
}

function judgeLoss(observed: Observed, call: ToolCall, tag: string, add: Add): void {
  const { status, result } = call;
  const own = observed.rows.filter((row) => row.tag === tag);
  if (status.kind === 'completed') {
    if (call.effect === 'read') return;
    const receipt = receiptOf(result?.content);
    if (receipt === null || !own.some(({ id }) => id === receipt)) {
      add(
        'loss',
        `${call.id} is completed with ${receipt ?? 'no receipt'}, the ledger has ${own.length} rows of it`,
      );
    }
  } else if (status.kind === 'skipped' || (status.kind === 'failed' && status.certain)) {
    const later = receiptsAfter(observed, call);
    const landed = own.find(({ id }) => !later.has(id));
    if (landed !== undefined)
      add('loss', `${call.id} is said not to have happened, and ${landed.id} is in the ledger`);
  } else if (status.kind !== 'failed') add('stuck', `${call.id} is still ${status.kind}`);
}

/** The receipts of equal calls that were made after a call had ended. Its claims are not about them. */
function receiptsAfter(
  { sessions }: Observed,
  { idempotencyKey, completedAt }: ToolCall,
): Set<string | null> {
  const equal = sessions.flatMap(({ state }) =>
    (state?.calls ?? []).filter((other) => other.idempotencyKey === idempotencyKey),
  );
  const later = equal.filter(({ issuedAt }) => (issuedAt ?? '') > (completedAt ?? issuedAt ?? ''));
  return new Set(later.map(({ result }) => receiptOf(result?.content)));
}

/**
 * Checks that the requested effect has happened. A fault is no reason to give up a call that can be repeated or
 * verified. Only a person may give up a call that nobody can verify. If a person was asked, their answer counts.
 */
function judgeDone(
  { rows, effects }: Observed,
  call: ToolCall,
  { kind, tag }: { kind: ToolKind; tag: string },
  add: Add,
): void {
  const { status, result, resolutions, idempotencyKey } = call;
  const people = [...resolutions, ...(effects[idempotencyKey]?.resolutions ?? [])];
  if (status.kind === 'completed' || people.length > 0) return;
  // The model may be told that an idempotent call failed although it landed: it may be repeated.
  if (kind === 'idempotent' && rows.some((row) => row.tag === tag)) return;
  if (status.kind === 'failed' || status.kind === 'skipped')
    add('not-done', `${call.id} is ${status.kind}: ${JSON.stringify(result?.content ?? null)}`);
}

function judgeEffect(
  { story, rows, sessions, effects }: Observed,
  { call, tag, kind, gap }: { call: ToolCall; tag: string; kind: ToolKind; gap: boolean },
  add: Add,
): void {
  const own = rows.filter((row) => row.tag === tag);
  // An idempotent tool may be repeated: with a service that ignores keys, the repetition is a second effect. Only one
  // worker is stopped in the gap, so a call can have one request there.
  const allowed =
    kind === 'idempotent' && story.keys === 'ignored' ? 'repeatable' : gap && own.length <= 2 ? 'gap' : null;
  if (own.length > 1)
    add(
      'duplicate',
      `${tag} is ${own.length} times in the ledger: ${own.map(({ id }) => id).join(', ')}`,
      allowed,
    );
  if (kind === 'read' || kind === 'idempotent') return;
  const claims = sessions.flatMap(({ task, state }) =>
    (state?.calls ?? [])
      .filter(({ idempotencyKey }) => idempotencyKey === call.idempotencyKey)
      .flatMap((each) => claimsOf(task.session, each)),
  );
  const effect = effects[call.idempotencyKey];
  if (effect !== undefined) claims.push(...claimsOf('effect', effect));
  const keyed = own
    .filter(({ key }) => isKeyOf(call, key, tag))
    .map(({ id, at }) => ({ id, at: Date.parse(at) }));
  if (keyed.length < own.length) add('duplicate', `${tag} landed under another key than its call's`);
  const why = unexplained(claims, keyed);
  if (why !== null) add('not-linearizable', why, allowed);
}

/** What a session claims about a call: about each dispatch, and about the call as a whole. */
function claimsOf(who: string, call: ToolCall): Claim[] {
  // The dispatches of a global call only wait. The effect's own session has the real dispatches.
  const waits = call.scope === 'global' && who !== 'effect';
  const receipt = receiptOf(call.result?.content);
  const end = call.completedAt === null ? null : Date.parse(call.completedAt);
  const claims = waits
    ? []
    : call.dispatches.map((dispatch, i): Claim => {
        const next = call.dispatches[i + 1];
        const absent = dispatch.outcome === 'absent';
        const respondedAt = next === undefined ? end : Date.parse(next.at);
        return {
          who: `${who} ${call.id} dispatch ${dispatch.no}`,
          // *Absent* is a claim about the end: the effect has not happened by then, and will not.
          invokedAt: absent && respondedAt !== null ? respondedAt : Date.parse(dispatch.at),
          respondedAt: absent ? respondedAt : dispatch.outcome === null ? null : respondedAt,
          claim: { kind: absent ? 'absent' : 'open' },
        };
      });
  if (call.status.kind === 'completed' && receipt !== null && call.issuedAt !== null) {
    const claim = { kind: 'landed', receipt } as const;
    claims.push({ who: `${who} ${call.id}`, invokedAt: Date.parse(call.issuedAt), respondedAt: end, claim });
  }
  return claims;
}

/** The id of the receipt in a result, even if the result is marked as from another call. */
function receiptOf(content: unknown): string | null {
  return (
    /"id":"(re_\d+)"/.exec(typeof content === 'string' ? content : JSON.stringify(content ?? null))?.[1] ??
    null
  );
}

/** What a person can do about an item of the inbox: keys, fields, and the request and the command that do it. */
import type { InboxItem } from '../contract/inbox.ts';
import { callCommand, command } from '../session/commands.ts';
import { sessionPath } from './api.ts';
import type { Role, You } from './you.ts';

/** What an answer needs from the person. */
type Input = 'args' | 'json' | 'reason' | 'cap' | 'none';

/** How an answer is shown and given. */
export interface Shown {
  label: string;
  key: string;
  input: Input;
  /** The label of the field, if there is a field. */
  field: string;
  role: Role;
}

const none = { input: 'none', field: '' } as const;
const reason = { input: 'reason', field: 'Reason, for the model' } as const;

/** All answers that this page can give. Others show their command only. */
export const ANSWERS: Readonly<Record<string, Shown>> = {
  approve: { label: 'Approve', key: 'a', ...none, role: 'decide' },
  edit: { label: 'Edit', key: 'e', input: 'args', field: 'Arguments', role: 'decide' },
  reject: { label: 'Reject', key: 'r', ...reason, role: 'decide' },
  respond: {
    label: 'Answer',
    key: 't',
    input: 'json',
    field: 'Result of the call: text or JSON',
    role: 'decide',
  },
  landed: {
    label: 'It happened',
    key: 'l',
    input: 'json',
    field: 'What it returned: text or JSON',
    role: 'decide',
  },
  absent: { label: 'It did not happen', key: 'n', ...none, role: 'decide' },
  failed: { label: 'Give up', key: 'f', ...reason, role: 'decide' },
  resume: { label: 'Continue', key: 'u', ...none, role: 'operate' },
  raise: { label: 'Raise the cap', key: 'b', input: 'cap', field: 'New cap', role: 'operate' },
  pool: { label: 'Raise the cap of the pool', key: 'b', input: 'cap', field: 'New cap', role: 'operate' },
  finish: { label: 'Let it finish', key: 'x', ...none, role: 'operate' },
  cancel: { label: 'Cancel', key: 'c', ...reason, role: 'operate' },
};

/** The label of an answer to an item. */
export function labelOf({ kind }: InboxItem, answer: string): string {
  if (kind === 'question' && answer === 'approve') return 'Use the default';
  if (kind === 'question' && answer === 'reject') return 'Do not answer';
  return ANSWERS[answer]?.label ?? answer;
}

/** The cap that an item waits for, and the lowest value that lets the session continue. `null`: no cap. */
export function capOf({ wait }: InboxItem): { cap: string; atLeast: number } | null {
  const next = wait?.next;
  if (next?.action === 'budget') return next;
  if (next?.action !== 'pool' || next.cap === undefined) return null;
  return { cap: next.cap, atLeast: next.atLeast ?? 0 };
}

/** Whether this page can give an answer. */
export function canGive(item: InboxItem, answer: string): boolean {
  return answer in ANSWERS && (answer !== 'pool' || capOf(item) !== null);
}

/** Why this person cannot give an answer, or `null`. */
export function refusal({ call }: InboxItem, answer: string, { name, verified, lacks }: You): string | null {
  const role = ANSWERS[answer]?.role;
  const lack = role === undefined ? null : lacks(role);
  const needs = call?.needs;
  if (lack !== null || needs === undefined || answer === 'reject') return lack;
  if (needs.verified && !verified) return 'Takes a verified person: use a token of your own.';
  if (name === '') return 'Takes a person with a name: write yours at the top.';
  // The server knows whether somebody who has approved may still edit.
  if (answer !== 'approve' || !needs.notBy.includes(name)) return null;
  const hasApproved = needs.given.some(({ by }) => by === name);
  return hasApproved
    ? 'You have approved it. Somebody else must, too.'
    : 'Takes somebody else: you have sent or edited messages of this session.';
}

/** What the person has typed. */
export interface Given {
  signature: You['signature'];
  text: string;
  args: unknown;
}

/** A request to the API. */
export interface Answering {
  method: 'POST' | 'PUT';
  path: string;
  body: Record<string, unknown>;
  /** The command of the CLI that does the same. */
  command: string;
}

/** JSON, or the text itself. */
function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The unit of a cap in the API, and its option in the CLI. */
const OPTIONS: Readonly<Record<string, string>> = {
  usd: '--usd',
  tokens: '--tokens',
  turns: '--turns',
  toolCalls: '--tool-calls',
  activeMs: '--active',
};

/** The request that gives an answer. `null` when the item does not take it. */
export function answering(
  item: InboxItem,
  answer: string,
  { signature, text, args }: Given,
): Answering | null {
  const next = item.call?.next ?? item.wait?.next;
  if (next === undefined) return null;
  const { sessionId } = next;
  const said = text === '' ? {} : { reason: text };
  const line = item.answers.find((each) => each.answer === answer)?.command ?? '';
  const post = (rest: string, body: object, shown = line): Answering => ({
    method: 'POST',
    path: sessionPath(sessionId, rest),
    body: { ...body, ...signature },
    command: shown,
  });
  if (next.action === 'decide') {
    const { callId, argsDigest } = next;
    const decide = (body: object, ...options: string[]): Answering => {
      const shown = callCommand(answer, sessionId, next, ...options);
      return post(
        `/calls/${encodeURIComponent(callId)}/decision`,
        { decision: answer, argsDigest, ...body },
        shown,
      );
    };
    if (answer === 'approve') return decide({});
    if (answer === 'reject') return decide(said, ...(text === '' ? [] : ['--reason', text]));
    if (answer === 'edit') return decide({ args }, '--args', JSON.stringify(args));
    if (answer !== 'respond') return null;
    // A form makes an object.
    return item.call?.question?.answer === undefined
      ? decide({ output: jsonOrText(text) }, '--output', text)
      : decide({ output: args }, '--output', JSON.stringify(args));
  }
  const seen = next.action === 'resolve' ? next : next.action === 'resume' ? next.call : undefined;
  if (seen !== undefined && (answer === 'landed' || answer === 'absent' || answer === 'failed')) {
    const { callId, argsDigest, dispatchNo } = seen;
    const more = answer === 'landed' ? { output: jsonOrText(text) } : answer === 'failed' ? said : {};
    const flag = answer === 'landed' ? ['--output', text] : text === '' ? [] : ['--reason', text];
    const shown =
      answer === 'absent' ? line : `${line} ${command(...flag).slice('perdure '.length)}`.trimEnd();
    const body = { outcome: answer, argsDigest, dispatchNo, ...more };
    return post(`/calls/${encodeURIComponent(callId)}/resolution`, body, shown);
  }
  if (answer === 'resume') return post('/resume', {});
  if (answer === 'cancel') return post('/cancel', said);
  const cap = capOf(item);
  if (cap === null) return null;
  const put = (rest: Pick<Answering, 'path' | 'command'>, body: object): Answering => ({
    method: 'PUT',
    ...rest,
    body: { ...body, ...signature },
  });
  const path = sessionPath(sessionId, '/budget');
  if (answer === 'finish') return put({ path, command: line }, { finish: true });
  const amount = cap.cap === 'activeMs' ? `${Math.ceil(Number(text) / 1_000)}s` : text;
  const option = [OPTIONS[cap.cap] ?? '', amount];
  const limits = { [cap.cap]: Number(text) };
  if (answer === 'raise') return put({ path, command: command('budget', sessionId, ...option) }, { limits });
  if (next.action !== 'pool') return null;
  const pool = `/pools/${encodeURIComponent(next.pool)}`;
  return put({ path: pool, command: command('pool', next.pool, ...option) }, limits);
}

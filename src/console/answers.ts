/** What a person can do about an item of the inbox: keys, fields, and the request and the command that do it. */
import type { InboxItem } from '../contract/inbox.ts';
import { callCommand, command } from '../session/commands.ts';
import { sessionPath } from './api.ts';

/** What an answer needs from the person. */
type Input = 'args' | 'json' | 'reason' | 'cap' | 'none';

/** How an answer is shown and given. */
export interface Shown {
  label: string;
  key: string;
  input: Input;
  /** Of the field, if it has one. */
  field: string;
  /** It lets something happen outside, or ends something. */
  moves: boolean;
}

const none = { input: 'none', field: '' } as const;
const reason = { input: 'reason', field: 'Reason, for the model' } as const;

/** All answers that this page can give. Others show their command only. */
export const ANSWERS: Readonly<Record<string, Shown>> = {
  approve: { label: 'Approve', key: 'a', ...none, moves: true },
  edit: { label: 'Edit', key: 'e', input: 'args', field: 'Arguments', moves: true },
  reject: { label: 'Reject', key: 'r', ...reason, moves: false },
  respond: {
    label: 'Answer',
    key: 't',
    input: 'json',
    field: 'Result of the call: text or JSON',
    moves: false,
  },
  landed: {
    label: 'It happened',
    key: 'l',
    input: 'json',
    field: 'What it returned: text or JSON',
    moves: false,
  },
  absent: { label: 'It did not happen', key: 'n', ...none, moves: true },
  failed: { label: 'Give up', key: 'f', ...reason, moves: false },
  resume: { label: 'Continue', key: 'u', ...none, moves: true },
  raise: { label: 'Raise the cap', key: 'b', input: 'cap', field: 'New cap', moves: true },
  finish: { label: 'Let it finish', key: 'x', ...none, moves: true },
  cancel: { label: 'Cancel', key: 'c', ...reason, moves: true },
};

/** What the person has typed. */
export interface Given {
  by: string;
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
export function answering(item: InboxItem, answer: string, { by, text, args }: Given): Answering | null {
  const next = item.call?.next ?? item.wait?.next;
  if (next === undefined) return null;
  const { sessionId } = next;
  const who = by === '' ? {} : { by };
  const said = text === '' ? {} : { reason: text };
  const line = item.answers.find((each) => each.answer === answer)?.command ?? '';
  const post = (rest: string, body: object, shown = line): Answering => ({
    method: 'POST',
    path: sessionPath(sessionId, rest),
    body: { ...body, ...who },
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
    return answer === 'respond' ? decide({ output: jsonOrText(text) }, '--output', text) : null;
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
  if (next.action !== 'budget') return null;
  const put = (body: object, shown: string): Answering => ({
    ...post('/budget', body, shown),
    method: 'PUT',
  });
  if (answer === 'finish') return put({ finish: true }, line);
  const amount = next.cap === 'activeMs' ? `${Math.ceil(Number(text) / 1_000)}s` : text;
  const shown = command('budget', sessionId, OPTIONS[next.cap] ?? '', amount);
  return answer === 'raise' ? put({ limits: { [next.cap]: Number(text) } }, shown) : null;
}

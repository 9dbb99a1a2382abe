/** Collects what waits for a person, over all sessions. */
import type { Client } from '@temporalio/client';
import { messageOf } from '../contract/errors.ts';
import type { Inbox, InboxAnswer, InboxItem, InboxOptions } from '../contract/inbox.ts';
import type { NextStep } from '../contract/next-step.ts';
import type { PendingCall, PendingQuestion, SessionSummary, SessionView } from '../contract/views.ts';
import { foldSession } from '../history/index.ts';
import { command, commandsFor } from '../session/commands.ts';
import { sessionView } from '../session/views.ts';
import { isPolled } from '../temporal/pollers.ts';
import { inChunks } from '../temporal/store-content.ts';
import { countSessions, listSessions } from '../temporal/visibility.ts';
import { describeSession } from './read-session.ts';
import { Session } from './session.ts';

/** How many sessions are read unless the caller says otherwise: reading one takes some milliseconds. */
const LIMIT_SESSIONS = 200;

/** Sorts after every time. */
const LAST = '~';

/** The items of sessions, by id, valid as long as the session's history has not grown. */
type Known = Map<string, { version: string; items: InboxItem[] }>;

/** Reads inboxes. It remembers what it has read of a session until the session's history grows. */
export class InboxReader {
  readonly #client: Client;
  #known: Known = new Map();

  constructor(client: Client) {
    this.#client = client;
  }

  /** See `Sessions.inbox`. */
  async read({ limit = LIMIT_SESSIONS, ...filter }: InboxOptions): Promise<Inbox> {
    const query = { ...filter, status: 'waits' };
    const sessions: SessionSummary[] = [];
    for await (const session of listSessions(this.#client, { ...query, limit })) sessions.push(session);
    const waiting = sessions.length < limit ? sessions.length : await countSessions(this.#client, query);
    const queues = new Map<string, Promise<boolean>>();
    const polled = (taskQueue: string): Promise<boolean> => {
      const known = queues.get(taskQueue) ?? isPolled(this.#client, taskQueue).catch(() => true);
      queues.set(taskQueue, known);
      return known;
    };
    const known: Known = new Map();
    const readItems = async (session: SessionSummary): Promise<void> => {
      known.set(session.id, await this.#itemsOf(session, polled));
    };
    await inChunks(sessions, readItems);
    const all = sessions.flatMap((session) =>
      (known.get(session.id)?.items ?? []).map((item) => ({ session, item })),
    );
    const effects = new Map<string, SessionSummary>();
    for (const { session, item } of all) {
      const id = effectOf(item);
      // The filter of ids, or the limit, may have left it out.
      if (id !== null && !known.has(id)) effects.set(id, { ...session, id });
    }
    await inChunks([...effects.values()], readItems);
    this.#known = known;
    const items = all.flatMap(({ item }) => asAsked(item, known) ?? []);
    return { items: unique(items).toSorted(firstDue), waiting, read: sessions.length };
  }

  async #itemsOf(
    session: SessionSummary,
    polled: (taskQueue: string) => Promise<boolean>,
  ): Promise<{ version: string; items: InboxItem[] }> {
    const { id, taskQueue } = session;
    try {
      const { runId, historyLength } = await describeSession(this.#client, id);
      const version = `${runId}:${historyLength}`;
      const known = this.#known.get(id);
      if (known?.version === version) return known;
      // Without a worker, read the history at once instead of waiting for an answer.
      const view = (await polled(taskQueue))
        ? await new Session(this.#client, id).state()
        : sessionView(await foldSession(this.#client, id, runId));
      return { version, items: itemsOf(session, view) };
    } catch (error) {
      return { version: '', items: [unreadable(session, messageOf(error))] };
    }
  }
}

function itemsOf({ id, agent, tenant }: SessionSummary, view: SessionView): InboxItem[] {
  if (view.status.kind !== 'active') return [];
  const { parent } = view;
  const tree = parent && { root: parent.root, path: [...parent.path, view.agent] };
  const common = { sessionId: id, agent: agent ?? view.agent, tenant, ...tree };
  const calls = view.pending.map((call): InboxItem => {
    const { kind, reason } = whyCall(call);
    return {
      ...common,
      kind,
      reason,
      since: call.askedAt ?? null,
      until: call.status.kind === 'approval' ? call.status.expiresAt : null,
      call,
      wait: null,
      answers: answersOf(call.next, call.question),
    };
  });
  const { wait } = view;
  if (wait === null) return calls;
  const kind = wait.reason === 'budget' ? 'budget' : 'wait';
  const answers = answersOf(wait.next);
  const item = {
    kind,
    reason: wait.message,
    since: wait.since,
    until: null,
    call: null,
    wait,
    answers,
  } as const;
  return [...calls, { ...common, ...item }];
}

function whyCall({ status, tool, question, compensates }: PendingCall): Pick<InboxItem, 'kind' | 'reason'> {
  switch (status.kind) {
    case 'approval':
      if (question !== undefined) return { kind: 'question', reason: question.text };
      if (compensates !== undefined)
        return { kind: 'approval', reason: `The effect of ${tool} ${compensates} is to be undone.` };
      return { kind: 'approval', reason: status.problem ?? `The agent asks to run ${tool}.` };
    case 'awaiting':
      return { kind: status.person?.kind ?? 'unknown', reason: status.person?.reason ?? '' };
    default:
      return { kind: status.kind, reason: status.reason };
  }
}

function unreadable({ id, agent, tenant, startedAt }: SessionSummary, reason: string): InboxItem {
  const answers = [{ answer: 'show', does: 'Shows the session.', command: command('show', id) }];
  const none = { since: startedAt, until: null, call: null, wait: null };
  return { sessionId: id, agent, tenant, kind: 'unreadable', reason, ...none, answers };
}

/** The session of the global effect that a call waits for, or `null`. */
function effectOf({ sessionId, call }: InboxItem): string | null {
  return call === null || call.next.sessionId === sessionId ? null : call.next.sessionId;
}

/**
 * The item with what is asked now, or `null` when nobody is asked. A call learns when its effect first needs a person, and
 * when it has an outcome. Only the effect's own session knows what happens in between.
 */
function asAsked(item: InboxItem, known: Known): InboxItem | null {
  const effect = known.get(effectOf(item) ?? '');
  const { call } = item;
  if (effect === undefined || call === null) return item;
  const [asks] = effect.items;
  if (asks === undefined) return null;
  if (asks.call === null) return item;
  const { kind, reason, answers } = asks;
  return { ...item, kind, reason, answers, call: { ...call, next: asks.call.next } };
}

/** Keeps one item of those that ask for the same answer, such as a global effect and the calls that wait for it. */
function unique(items: readonly InboxItem[]): InboxItem[] {
  const asksFor = ({ call, wait }: InboxItem): string | null => {
    if (wait?.next.action === 'pool') return `pool ${wait.next.pool}`;
    if (call?.next.action === 'resolve') return `${call.next.sessionId} ${call.next.callId}`;
    return call?.next.action === 'resume' ? `${call.next.sessionId} ${call.next.call?.callId}` : null;
  };
  const waiting = items.filter((item) => item.call?.next.sessionId !== item.sessionId);
  const shown = new Map([...items, ...waiting].map((item) => [asksFor(item), item]));
  return items.filter((item) => asksFor(item) === null || shown.get(asksFor(item)) === item);
}

/** Sorts by what expires first, then by what has waited longest. */
function firstDue(a: InboxItem, b: InboxItem): number {
  const key = ({ until, since }: InboxItem): string => `${until ?? LAST} ${since ?? LAST}`;
  return key(a) < key(b) ? -1 : 1;
}

/** What a person can do next, what each answer would do, and its command. */
function answersOf(next: NextStep, question?: PendingQuestion): InboxAnswer[] {
  const commands = commandsFor(next);
  const answers = meanings(next).map(([answer, does], index) => ({
    answer,
    does,
    command: commands[index] ?? '',
  }));
  if (question === undefined) return answers;
  return ['respond', 'approve', 'reject'].flatMap((name) => {
    const does = ofQuestion(name, question);
    const found = answers.find(({ answer }) => answer === name);
    return does === null || found === undefined ? [] : [{ ...found, does }];
  });
}

/** What an answer to a question does; `null` when it makes no sense. */
function ofQuestion(answer: string, { otherwise }: PendingQuestion): string | null {
  if (answer === 'respond') return 'The model gets your answer.';
  if (answer === 'reject') return 'The question stays unanswered. The model is told your reason.';
  return otherwise === undefined ? null : `The model gets the default: ${JSON.stringify(otherwise)}`;
}

/** The answers, in the order of {@link commandsFor}. */
function meanings(next: NextStep): [answer: string, does: string][] {
  switch (next.action) {
    case 'decide':
      if (next.undoes === true) {
        return [
          ['approve', 'The effect is undone.'],
          ['reject', 'The effect stays.'],
          ['respond', 'Records that somebody has undone the effect, with the output that you give.'],
        ];
      }
      return [
        ['approve', 'The call runs with these arguments.'],
        ['reject', 'The call does not run. The model is told your reason.'],
        ['edit', "The call runs with the arguments that you write, once they have passed the tool's schema."],
        ['respond', 'The call does not run. The model gets your answer as its result.'],
      ];
    case 'resolve': {
      const which = `dispatch ${next.dispatchNo}`;
      return [
        [
          'landed',
          `Records that ${which} happened, with the output that you give. The call does not run again.`,
        ],
        ['absent', `Records that ${which} did not happen. The call runs again.`],
        ['failed', 'The call does not run again. The model is told that it failed.'],
      ];
    }
    case 'resume': {
      const { sessionId, call } = next;
      const more = call === undefined ? [] : meanings({ action: 'resolve', sessionId, ...call });
      return [['resume', 'The session continues and tries again.'], ...more];
    }
    case 'budget':
      return [
        ['raise', 'Raises the cap. The session continues.'],
        ['finish', 'The model writes a last summary. The caps are raised by what that can cost at most.'],
      ];
    case 'pool':
      return [['pool', 'Raises the cap of the pool. All sessions that wait for it continue.']];
    case 'cancel':
      return [['cancel', 'Ends the session.']];
    case 'fork':
      return [['checkpoints', 'Lists the checkpoints from which the session can be forked or rewound.']];
    default:
      return next satisfies never;
  }
}

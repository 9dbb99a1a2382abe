/** What a run of the lab is made of, as plain data: a seed gives it, a command line names it, shrinking cuts it down. */
import type { ToolCall } from 'perdure';
import type { ScriptedRequest } from 'perdure/testing';

/** The kinds of tools that the guarantees differ for. */
export const KINDS = ['read', 'idempotent', 'mutate', 'blind', 'global'] as const;
export type ToolKind = (typeof KINDS)[number];

/** The kinds in words. */
export const KIND_TEXT: Readonly<Record<ToolKind, string>> = {
  read: 'read',
  idempotent: 'idempotent',
  mutate: 'mutate with verify',
  blind: 'mutate without verify',
  global: 'mutate, global',
};

export const TOOL: Readonly<Record<ToolKind, string>> = {
  read: 'look',
  idempotent: 'note',
  mutate: 'pay',
  blind: 'payBlind',
  global: 'payGlobally',
};

/** The second read of a reply: a session of reads asks for two at once. */
export const ALSO_READ = 'glance';

/** The steps of a turn at which a fault can strike. */
export const STEPS = {
  'model-asked': 'the worker has the model activity and has not begun it',
  asking: 'the calls of a reply have ended, and the request for the next reply is about to be sent',
  'model-answered': 'the model has answered, nothing is recorded',
  dispatched: 'the worker has the tool call and has not run it',
  'in-call': 'in the tool, before its own fence',
  reading: 'in the last of several reads of one reply',
  gap: 'between the last fence and the socket',
  landed: 'the effect has happened, the tool has not returned',
  returned: 'the tool has returned, nothing is recorded',
  'between-turns': 'the session is idle',
  approval: 'the session waits for a person',
  attached: 'a call has attached to its global effect, nothing is recorded',
  telling: 'a global effect has an outcome, and has told nobody',
  verifying: 'in recovery, before verify has looked',
  verified: 'in recovery, verify has looked, nothing is recorded',
  sealing: 'the run has ended, and what leaves it is about to be stored',
  sealed: 'what leaves the run is stored, nothing is recorded',
  'rolling-over': 'the worker has the first task of the new run',
  fetching: 'another worker has asked for what earlier runs have stored',
  delegated: 'the session of a sub-agent has been started, nothing is recorded',
  'child-running': 'two levels below, the effect has happened and the tool has not returned',
  'child-asks': 'two levels below, a call waits for a person',
  'child-decided': 'a worker has the decision on a call two levels below, nothing is recorded',
  'child-done': 'the lowest sub-agent is about to report its answer',
  'child-told': 'the lowest sub-agent has reported its answer, nothing is recorded',
  'parent-sealing': 'a sub-agent with an answer from below is about to go on in a new run',
  'background-started': 'the session of a sub-agent in the background has been started, nothing is recorded',
  'background-running':
    'the caller has answered; below its sub-agent in the background, the effect has happened and the tool has not returned',
  'background-done': 'a sub-agent in the background is about to report its answer',
  'background-told': 'a sub-agent in the background has reported its answer, nothing is recorded',
  'report-queued':
    'the caller is about to go on in a new run, and has the report of its sub-agent in its queue',
  'report-carried': 'the worker has the first task of a new run, and the report is in its queue',
  'caller-ended':
    'the caller has ended or was cancelled while its sub-agent works, and has told it to stop, nothing is recorded',
} as const;
export type Step = keyof typeof STEPS;

/** Steps of a session that goes on in a new run after each turn. */
export const ROLLING: readonly Step[] = ['sealing', 'sealed', 'rolling-over', 'fetching'];

/** Steps of a tree: a session, a sub-agent and a sub-agent of that one, which pays. Each goes on in a new run after each turn. */
export const TREE: readonly Step[] = [
  'delegated',
  'child-running',
  'child-asks',
  'child-decided',
  'child-done',
  'child-told',
  'parent-sealing',
];

/**
 * Steps of a tree of three levels with one sub-agent in the background: below the root, which has one in the foreground
 * itself, or below a sub-agent in the foreground.
 */
export const BACKGROUND: readonly Step[] = [
  'background-started',
  'background-running',
  'background-done',
  'background-told',
  'report-queued',
  'report-carried',
  'caller-ended',
];

/** The tools that give a task to the level below. */
export const DELEGATE = { assign: 'assign', delegate: 'delegate', launch: 'launch' } as const;

/** The tool that a session gives its tasks to the level below with, if it has one. */
export function delegateOf({ below, background }: Pick<Task, 'below' | 'background'>): string | undefined {
  if (below === undefined) return undefined;
  if (below === background) return DELEGATE.launch;
  return below === 1 ? DELEGATE.assign : DELEGATE.delegate;
}

/** The caller of the sub-agent in the background, by the levels below it: the root, or the sub-agent of the root. */
export function callerBelow({ seed }: Pick<Story, 'seed'>): 1 | 2 {
  return seed % 2 === 0 ? 2 : 1;
}

/** Whether the service takes a key twice as one effect, or as two. */
export type Keys = 'honoured' | 'ignored';

/** What sessions run on: a dev server over a file, or the stack of docker-compose.yml without its containers. */
export const STACKS = ['dev', 'postgres'] as const;
export type StackName = (typeof STACKS)[number];

/** One run. */
export interface Story {
  readonly point: string;
  readonly step: Step;
  readonly keys: Keys;
  /** One session each; of `global` two sessions that ask for one effect. */
  readonly kinds: readonly ToolKind[];
  /** Tool calls of a session. */
  readonly turns: number;
  /** The turn that is struck, from 1. */
  readonly strike: number;
  /** Whether people write to the sessions while the fault is on. */
  readonly messages: boolean;
  readonly stack: StackName;
  /** Worker processes that share the sessions. */
  readonly workers: number;
  /** What else the point chooses by. */
  readonly seed: number;
}

/** The command that tells a story again. */
export function commandOf(story: Story): string {
  const { point, step, keys, kinds, turns, strike, messages, stack, workers, seed } = story;
  const words = [`--only ${point}@${step}`, `--keys ${keys}`, `--kinds ${kinds.join(',')}`];
  words.push(`--turns ${turns}`, `--strike ${strike}`);
  words.push(messages ? '--messages' : '--quiet');
  if (stack !== 'dev') words.push(`--stack ${stack}`);
  if (workers !== 1) words.push(`--workers ${workers}`);
  return `npm run faults -- ${words.join(' ')} --seed ${seed}`;
}

/** The price of the scripted model, and what it reports for each reply. */
export const PRICE = { inputPerMillion: 1, outputPerMillion: 2 } as const;
export const USAGE = { inputTokens: 100, outputTokens: 10 } as const;
/** Billionths of a dollar for a reply. */
export const REPLY_NANO_USD: number =
  (USAGE.inputTokens * PRICE.inputPerMillion + USAGE.outputTokens * PRICE.outputPerMillion) * 1_000;

/** How a session's calls behave: they are approved by a person, throw after their effect, or return what is large or stored. */
export const MODES = ['plain', 'ask', 'throw', 'large', 'stored'] as const;
export type Mode = (typeof MODES)[number];

/** The message, by id and first word, that asks for one call more. */
export const MORE = 'more';

/** What the first message of a session tells the scripted model. */
export interface Task {
  readonly session: string;
  readonly kind: ToolKind;
  /** The tag of its effects; sessions that share one ask for one effect. */
  readonly tag: string;
  readonly turns: number;
  readonly mode: Mode;
  /** The model's connection breaks in the middle of its first answer to this turn's prompt. */
  readonly cutReply?: number;
  /** The model's window has room for a few messages, and the connection breaks in its second answer for a summary. */
  readonly compacts?: true;
  /** The levels of sub-agents below it; the lowest makes the calls of its kind, the others delegate. */
  readonly below?: number;
  /** The session with so many levels below it lets its sub-agent work in the background. */
  readonly background?: 1 | 2;
}

export function taskText(task: Task): string {
  return JSON.stringify(task);
}

/** The task of the session that a request is of. */
export function taskOf({ messages }: Pick<ScriptedRequest, 'messages'>): Task {
  const text = messages.find(({ role }) => role === 'user')?.text ?? '{}';
  // A summary repeats the first message word for word.
  return JSON.parse(text.split(/\[Said earlier.*\]\n/)[1] ?? text) as Task;
}

/** The tag of the effect of a turn, from 1. */
function effectTag(task: Pick<Task, 'tag'>, turn: number): string {
  return `${task.tag}#${turn}`;
}

/** The tags of the calls of a turn, from 1: a reply asks for one call, or for two reads. */
export function callTags(task: Pick<Task, 'tag' | 'kind' | 'mode'>, turn: number): string[] {
  const tag = effectTag(task, turn);
  return task.kind === 'read' && task.mode !== 'large' && task.mode !== 'stored' ? [tag, `${tag}+`] : [tag];
}

/** Whether a row of the ledger has the key of a call. A server between the two knows no key: it names an effect by its tag. */
export function isKeyOf(
  { idempotencyKey, args }: Pick<ToolCall, 'idempotencyKey' | 'args'>,
  key: string | null,
  tag: string,
): boolean {
  const own = (args as { tag?: unknown } | null)?.tag;
  return key === idempotencyKey || (own === tag && key === tag);
}

/** The task of the sub-agent that a session gives its task of a turn to. */
export function taskBelow(task: Task, turn: number): Task {
  const { session, kind, mode, below = 0, background } = task;
  const tag = effectTag(task, turn);
  return {
    session: `${session}/${turn}`,
    kind,
    tag,
    turns: 1,
    mode,
    ...(below > 1 ? { below: below - 1, ...(background && { background }) } : {}),
  };
}

/** A small generator of numbers in [0, 1) from a seed (mulberry32). */
export function randomOf(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The items in an order of chance. */
export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

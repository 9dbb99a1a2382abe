/**
 * A story describes a run of the lab as plain data: a seed makes it, a command line names it, shrinking cuts it down.
 */
import type { ToolCall } from 'perdure';
import type { ScriptedRequest } from 'perdure/testing';

/** The kinds of tools, for which the guarantees differ. */
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

/** Steps of a session that continues in a new run after each turn. */
export const ROLLING: readonly Step[] = ['sealing', 'sealed', 'rolling-over', 'fetching'];

/**
 * Steps of a tree: a session, a sub-agent, and a sub-agent below it, which pays. Each continues in a new run after each
 * turn.
 */
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

/** The tool with which a session gives tasks to the level below, if it has one. */
export function delegateOf({ below, background }: Pick<Task, 'below' | 'background'>): string | undefined {
  if (below === undefined) return undefined;
  if (below === background) return DELEGATE.launch;
  return below === 1 ? DELEGATE.assign : DELEGATE.delegate;
}

/** How many levels are below the caller of the background sub-agent. 2: the root; 1: the root's sub-agent. */
export function callerBelow({ seed }: Pick<Story, 'seed'>): 1 | 2 {
  return seed % 2 === 0 ? 2 : 1;
}

/** Whether the service treats two requests with the same key as one effect, or as two. */
export type Keys = 'honoured' | 'ignored';

/** The server of the sessions: a dev server over a file, or the stack of docker-compose.yml without containers. */
export const STACKS = ['dev', 'postgres'] as const;
export type StackName = (typeof STACKS)[number];

/** One run. */
export interface Story {
  readonly point: string;
  readonly step: Step;
  readonly keys: Keys;
  /** One session for each kind. For `global`, two sessions that request the same effect. */
  readonly kinds: readonly ToolKind[];
  /** Tool calls of a session. */
  readonly turns: number;
  /** The turn that is struck, from 1. */
  readonly strike: number;
  /** Whether people write to the sessions during the fault. */
  readonly messages: boolean;
  readonly stack: StackName;
  /** Worker processes that share the sessions. */
  readonly workers: number;
  /** The seed for the other choices of the point. */
  readonly seed: number;
}

/** The command that repeats a story. */
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

/**
 * How a session's calls behave: they wait for an approval, throw after their effect, or return large or stored results.
 */
export const MODES = ['plain', 'ask', 'throw', 'large', 'stored'] as const;
export type Mode = (typeof MODES)[number];

/** The id and first word of the message that asks for one more call. */
export const MORE = 'more';

/** What the first message of a session tells the scripted model. */
export interface Task {
  readonly session: string;
  readonly kind: ToolKind;
  /** The tag of its effects. Sessions with the same tag request the same effect. */
  readonly tag: string;
  readonly turns: number;
  readonly mode: Mode;
  /** The model's connection breaks in the middle of its first answer to this turn's prompt. */
  readonly cutReply?: number;
  /** The model's window has room for a few messages, and the connection breaks in its second answer for a summary. */
  readonly compacts?: true;
  /** The levels of sub-agents below it. The lowest level makes the calls of the kind, the others delegate. */
  readonly below?: number;
  /** The session with this many levels below it starts its sub-agent in the background. */
  readonly background?: 1 | 2;
}

export function taskText(task: Task): string {
  return JSON.stringify(task);
}

/** The task of the session that sent a request. */
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

/**
 * Whether a row of the ledger has the key of a call. An MCP server in between does not know the key: it names an effect
 * by its tag.
 */
export function isKeyOf(
  { idempotencyKey, args }: Pick<ToolCall, 'idempotencyKey' | 'args'>,
  key: string | null,
  tag: string,
): boolean {
  const own = (args as { tag?: unknown } | null)?.tag;
  return key === idempotencyKey || (own === tag && key === tag);
}

/** The task that a session gives to its sub-agent in a turn. */
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

/** A small random number generator with a seed, for numbers in [0, 1) (mulberry32). */
export function randomOf(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The items in random order. */
export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

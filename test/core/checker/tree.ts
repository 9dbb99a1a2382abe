/** A tree of two levels with one pool: both sessions and the pool are the real cores, and everything that can be lost is. */
import type { DrawInput } from '../../../src/contract/activities.ts';
import type { ModelResult } from '../../../src/contract/model-call.ts';
import type { DrawAnswer, DrawRequest } from '../../../src/contract/pool.ts';
import type { SessionInput } from '../../../src/contract/session-input.ts';
import type { ChildStart } from '../../../src/contract/tree.ts';
import { spentAtWorst } from '../../../src/history/what-happened.ts';
import type { SessionState } from '../../../src/index.ts';
import {
  draw,
  newPool,
  type PoolData,
  poolView,
  setPool,
  closed as takeBack,
  wake,
} from '../../../src/pool/pool-state.ts';
import { advance } from '../../../src/session/advance.ts';
import type { Command, Input, Outcome } from '../../../src/session/events.ts';
import { initialState } from '../../../src/session/initial.ts';
import { poolSpent } from '../../../src/session/pool.ts';
import { endOf, usageOf } from '../../../src/session/sub-agents.ts';
import { MOMENT, manifestOf } from './scenario.ts';

const PARENT = 'top';
/** A cap that a walk raises to. */
const ENOUGH = 1_000_000;
const usage = { inputTokens: 40, outputTokens: 20 };

interface Run {
  state: SessionState;
  /** Commands without an outcome. */
  open: Exclude<Command, { kind: 'cancel' | 'close' | 'continue' }>[];
  closed: boolean;
}

interface Tree {
  runs: { [sessionId: string]: Run };
  pool: PoolData | null;
  /** The most that the cap has been. */
  cap: number;
  /** Requests that a killed worker has sent, and that may still arrive. */
  late: { sessionId: string; input: DrawInput }[];
  /** Faults that may still happen. */
  faults: number;
}

interface Action {
  story: string;
  happens: (tree: Tree) => void;
}

/** How the pool answers: its own core, or one with a planted fault. */
export type Draw = (pool: PoolData, request: DrawRequest, now: number) => DrawAnswer;

export interface TreeWalk {
  states: number;
  happened: ReadonlySet<string>;
  /** The way to the first broken promise, and the promise. */
  broken: string | null;
}

/** Walks all interleavings, breadth first. */
export function walkTree({ tokens, faults }: { tokens: number; faults: number }, ask: Draw = draw): TreeWalk {
  const tree: Tree = { runs: {}, pool: null, cap: tokens, late: [], faults };
  begin(tree, PARENT, { agent: 'lead', mode: 'task', message: { text: 'go' }, budget: { tokens } });
  const seen = new Set([nameOf(tree)]);
  const happened = new Set<string>();
  const queue = [{ tree, path: [] as string[] }];
  for (const { tree: from, path } of queue) {
    const actions = actionsOf(from, ask);
    const problem = problemOf(from, actions.length > 0);
    if (problem !== null) return { states: seen.size, happened, broken: [...path, problem].join('\n') };
    for (const { story, happens } of actions) {
      const next = structuredClone(from);
      happens(next);
      happened.add(story);
      const name = nameOf(next);
      if (seen.has(name)) continue;
      seen.add(name);
      queue.push({ tree: next, path: [...path, story] });
    }
  }
  return { states: seen.size, happened, broken: null };
}

function begin(tree: Tree, sessionId: string, input: SessionInput): void {
  const state = initialState({ sessionId, runId: sessionId, firstRunId: sessionId }, input, MOMENT);
  tree.runs[sessionId] = { state, open: [], closed: false };
  move(tree, sessionId, []);
}

function move(tree: Tree, sessionId: string, inputs: Input[]): void {
  const run = tree.runs[sessionId];
  if (run === undefined || run.closed) return;
  for (const command of advance(run.state, inputs, MOMENT).commands) {
    if (command.kind === 'cancel') {
      run.open = run.open.filter(({ seq }) => !(command.timer && seq === command.seq));
    } else if (command.kind === 'close') run.closed = true;
    else if (command.kind !== 'continue') run.open.push(command);
  }
}

function end(tree: Tree, sessionId: string, seq: number, outcome: Outcome): void {
  const run = tree.runs[sessionId];
  if (run === undefined) return;
  run.open = run.open.filter((command) => command.seq !== seq);
  move(tree, sessionId, [{ type: 'outcome', seq, outcome }]);
}

function answered(tree: Tree, sessionId: string, { pool: id, ...input }: DrawInput, ask: Draw): DrawAnswer {
  tree.pool ??= newPool(id);
  return ask(tree.pool, { ...input, sessionId }, MOMENT.now);
}

const lost = { ok: false, failure: { kind: 'timeout', message: 'lost' } } as const;

/** Everything that can happen now. */
function actionsOf(tree: Tree, ask: Draw): Action[] {
  const actions: Action[] = [];
  const may = (story: string, happens: Action['happens']): void => void actions.push({ story, happens });
  const mayFail = (story: string, happens: Action['happens']): void => {
    if (tree.faults === 0) return;
    may(story, (now) => {
      now.faults -= 1;
      happens(now);
    });
  };
  for (const [id, { open, closed, state }] of Object.entries(tree.runs)) {
    const who = id === PARENT ? 'the parent' : 'the child';
    for (const command of open) {
      const { seq } = command;
      const gets = (outcome: Outcome) => (now: Tree) => end(now, id, seq, outcome);
      switch (command.kind) {
        case 'describe':
          may(`${who} is described`, gets(described(id)));
          break;
        case 'model':
          may(`the model answers ${who}`, gets(reply(id, state)));
          mayFail(`a model call of ${who} is lost`, gets({ kind: 'model', result: lost }));
          break;
        case 'draw':
          may(`${who} ${command.input.need === undefined ? 'gives back' : 'draws'}`, (now) => {
            const value = answered(now, id, command.input, ask);
            end(now, id, seq, { kind: 'draw', result: { ok: true, value } });
          });
          mayFail(`a worker of ${who} dies, and what it has sent to the pool is late`, (now) => {
            now.late.push({ sessionId: id, input: command.input });
          });
          mayFail(`a worker of ${who} dies with the pool's answer`, (now) => {
            answered(now, id, command.input, ask);
          });
          mayFail(`${who} hears nothing of the pool`, gets({ kind: 'draw', result: lost }));
          break;
        case 'attach':
          may('the child is started', (now) => {
            const { child } = command.input;
            if (child === undefined) return;
            start(now, child);
            const { state: of, closed: over } = now.runs[child.sessionId] as Run;
            const value = over
              ? ({ kind: 'ended', end: endOf(of) } as const)
              : ({ kind: 'waiting' } as const);
            end(now, id, seq, { kind: 'attach', result: { ok: true, value } });
          });
          mayFail('the start of the child is lost', (now) => {
            if (command.input.child !== undefined) start(now, command.input.child);
            end(now, id, seq, { kind: 'attach', result: lost });
          });
          break;
        case 'report':
          may('the child reports', (now) => {
            const told = command.input.end;
            if (told !== undefined)
              move(now, PARENT, [{ type: 'child_done', value: { child: id, end: told } }]);
            end(now, id, seq, { kind: 'report', result: { ok: true, value: undefined } });
          });
          break;
        case 'timer':
          // One that waits for its cap would ask for ever.
          if (tree.cap === ENOUGH || state.wait === null)
            may(`a timer of ${who} fires`, gets({ kind: 'timer' }));
          break;
        default:
          throw new Error(`nobody expects ${command.kind}`);
      }
    }
    if (closed || state.wait === null) continue;
    if (
      state.wait.next.action === 'pool' &&
      tree.pool !== null &&
      wake(structuredClone(tree.pool), MOMENT.now).includes(id)
    )
      may(`the pool tells ${who}`, (now) => {
        if (now.pool !== null) wake(now.pool, MOMENT.now);
        move(now, id, [{ type: 'pool_changed', value: { pool: now.pool?.poolId ?? '' } }]);
      });
    if (tree.cap < ENOUGH)
      may('a person raises the caps', (now) => {
        now.cap = ENOUGH;
        move(now, PARENT, [{ type: 'budget', value: { limits: { tokens: ENOUGH } } }]);
        if (now.pool !== null) setPool(now.pool, { tokens: ENOUGH }, MOMENT.now);
      });
  }
  for (const [i, { sessionId, input }] of tree.late.entries())
    may('what was sent late arrives', (now) => {
      now.late.splice(i, 1);
      answered(now, sessionId, input, ask);
    });
  return actions;
}

function start(tree: Tree, { sessionId, agent, pool, parent }: ChildStart): void {
  if (tree.runs[sessionId] !== undefined) return;
  const message = { text: 'work' };
  begin(tree, sessionId, { agent, mode: 'task', message, parent, ...(pool && { pool }) });
}

function described(id: string): Outcome {
  const tools = id === PARENT ? { ask: { agent: { name: 'helper' } } } : {};
  const manifest = manifestOf({ name: '', tools, replies: [], may: {} });
  const value = { kind: 'manifest', manifest, searchAttributes: [] } as const;
  return { kind: 'describe', result: { ok: true, value: { ...value, searchAttributes: [] } } };
}

function reply(id: string, { turn }: SessionState): Outcome {
  const delegates = id === PARENT && turn === 0;
  const value: ModelResult = {
    kind: 'reply',
    blocks: delegates ? [] : [{ kind: 'text', text: 'Done.' }],
    calls: delegates ? [{ name: 'ask', args: { what: 'a' } }] : [],
    usage,
  };
  return { kind: 'model', result: { ok: true, value } };
}

/** The promise that a state breaks, or `null`. */
function problemOf(tree: Tree, moves: boolean): string | null {
  const { runs, pool, cap } = tree;
  const all = Object.values(runs);
  const tokensOf = ({ state }: Run): number => poolSpent(state.budget.spent).tokens;
  const used = all.reduce((sum, run) => sum + tokensOf(run) + run.state.budget.reserved.tokens, 0);
  if (used > cap) return `the tree has used or reserved ${used} tokens, the cap is ${cap}`;
  if (pool !== null) {
    const { spent, held } = poolView(pool, MOMENT.now);
    if (spent.tokens + held.tokens > cap)
      return `${spent.tokens} tokens are spent and ${held.tokens} held, the cap is ${cap}`;
  }
  if (moves) return null;
  const parent = runs[PARENT] as Run;
  if (!all.every(({ closed }) => closed) || all.length !== 2) return 'nothing can happen any more';
  const spent = all.reduce((sum, run) => sum + tokensOf(run), 0);
  const { inputTokens, outputTokens } = usageOf(parent.state);
  if (inputTokens + outputTokens !== spent)
    return `the parent says that its tree has used ${inputTokens + outputTokens} tokens, it has used ${spent}`;
  if (pool === null) return 'nobody has made a pool';
  // What a session has not told before its end is found in its history.
  const settled = structuredClone(pool);
  for (const [sessionId, { no, held }] of Object.entries(pool.holders)) {
    if (held.tokens === 0) continue;
    const { state } = runs[sessionId] as Run;
    takeBack(settled, { sessionId, no, spent: poolSpent(spentAtWorst(state)) }, MOMENT.now);
  }
  const view = poolView(settled, MOMENT.now);
  if (view.spent.tokens !== spent || view.held.tokens !== 0)
    return `the tree has used ${spent} tokens, the pool says ${view.spent.tokens}, and holds ${view.held.tokens}`;
  return null;
}

/** What nobody decides by: how often was looked, how long a timer takes, and words. */
const UNSEEN: ReadonlySet<string> = new Set([
  'seq',
  'checks',
  'ms',
  'transcript',
  'manifest',
  'notices',
  'summary',
  'message',
]);

/** Equal for states that cannot be told apart by what follows. */
function nameOf(tree: Tree): string {
  return JSON.stringify(tree, (key, value: unknown) => (UNSEEN.has(key) ? undefined : value));
}

/** Walks everything that can happen, breadth first, so that the first broken promise has the shortest story. */

import type { SessionState } from '../../../src/index.ts';
import type { Command, PersonInput } from '../../../src/session/events.ts';
import { seenDigest } from '../../../src/session/question.ts';
import { phaseOf } from '../../../src/session/state.ts';
import { actionsOf } from './actions.ts';
import { checkChildren } from './child-actions.ts';
import { checkState, isGoal, Violation } from './invariants.ts';
import { CORE, follow, type Node, nameOf, type Protocol, startNode } from './node.ts';
import { MOMENT, type Scenario } from './scenario.ts';

/** What a walk has found. */
export interface Walk {
  states: number;
  transitions: number;
  /** The longest of the shortest ways to a state. */
  depth: number;
  /** How many states were seen in each phase: that a walk has been where it should. */
  phases: Record<string, number>;
  /** What has happened on the way to some state, in the words of the stories, without the ids of calls. */
  happened: ReadonlySet<string>;
  broken: { promise: string; story: string } | null;
}

/** Walks a scenario to its end, or to the first broken promise. */
export function explore(scenario: Scenario, protocol: Protocol = CORE): Walk {
  return new Explorer(scenario, protocol).walk();
}

class Explorer {
  readonly #scenario: Scenario;
  readonly #protocol: Protocol;
  readonly #numbers = new Map<string, number>();
  /** By number of a state: where it was first reached from, and by which of the actions there. */
  readonly #parents: number[] = [];
  readonly #ways: number[] = [];
  readonly #depths: number[] = [];
  readonly #goals: number[] = [];
  readonly #edges: number[] = [];
  readonly #happened = new Set<string>();
  readonly #phases: Record<string, number> = {};
  /** The way to what is being looked at. */
  #current: number[] = [];
  #queue: { number: number; name: string; node: Node }[] = [];

  constructor(scenario: Scenario, protocol: Protocol) {
    this.#scenario = scenario;
    this.#protocol = protocol;
  }

  walk(): Walk {
    try {
      this.#reach(startNode(this.#scenario, this.#protocol), -1, -1);
      while (this.#queue.length > 0) {
        const layer = this.#queue;
        this.#queue = [];
        for (const { number, name, node } of layer) this.#expand(number, name, node);
      }
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      return this.#found(error.message, this.#current);
    }
    const trap = this.#trap();
    if (trap !== null)
      return this.#found('from here the session can never come to its end', this.#pathTo(trap));
    return this.#found(null, []);
  }

  #expand(number: number, name: string, node: Node): void {
    this.#current = this.#pathTo(number);
    const actions = actionsOf(this.#scenario, node.state, node.world);
    checkChildren(node.state, node.world);
    checkState(
      this.#scenario,
      node.state,
      node.world,
      actions.some(
        ({ by, deliveries, time }) => by === 'world' && (deliveries.length > 0 || time === 'next run'),
      ),
    );
    this.#refuse(node, name);
    for (const [way, action] of actions.entries()) {
      this.#current = [...this.#current.slice(0, this.#depths[number]), way];
      const next = follow(this.#scenario, this.#protocol, node, action);
      if (next === null) continue;
      this.#happened.add(action.story.replaceAll(/call_\d+_\d+/g, 'a call'));
      this.#reach(next.node, number, way);
    }
  }

  #reach(node: Node, from: number, way: number): void {
    const name = nameOf(node);
    let number = this.#numbers.get(name);
    if (number === undefined) {
      number = this.#parents.length;
      this.#numbers.set(name, number);
      this.#parents.push(from);
      this.#ways.push(way);
      this.#depths.push(from < 0 ? 0 : (this.#depths[from] ?? 0) + 1);
      const phase = phaseOf(node.state);
      this.#phases[phase] = (this.#phases[phase] ?? 0) + 1;
      if (isGoal(node.state)) this.#goals.push(number);
      this.#queue.push({ number, name, node });
    }
    if (from >= 0) this.#edges.push(from, number);
  }

  /** What must be refused is refused, and changes nothing: a decision is taken once. */
  #refuse(node: Node, name: string): void {
    const inputs = refusable(node.state);
    for (const input of inputs) {
      const refusal = this.#protocol.evolve(node.state, input, MOMENT);
      if (refusal === null) throw new Violation(`${inJSON(input)} was accepted, but is out of its time`);
    }
    if (inputs.length > 0 && nameOf(node) !== name) {
      throw new Violation(`what was refused has changed the state: ${inputs.map(inJSON).join(', ')}`);
    }
  }

  /** A state from which no end can be reached any more, or `null`. */
  #trap(): number | null {
    const count = this.#parents.length;
    const starts = new Uint32Array(count + 1);
    const at = (array: Uint32Array, i: number): number => array[i] ?? 0;
    for (let i = 1; i < this.#edges.length; i += 2) {
      const to = this.#edges[i] ?? 0;
      starts[to + 1] = at(starts, to + 1) + 1;
    }
    for (let i = 0; i < count; i++) starts[i + 1] = at(starts, i + 1) + at(starts, i);
    const fill = starts.slice();
    const sources = new Uint32Array(this.#edges.length / 2);
    for (let i = 0; i < this.#edges.length; i += 2) {
      const to = this.#edges[i + 1] ?? 0;
      sources[at(fill, to)] = this.#edges[i] ?? 0;
      fill[to] = at(fill, to) + 1;
    }
    const ends = new Uint8Array(count);
    const stack = [...this.#goals];
    for (const goal of stack) ends[goal] = 1;
    for (let end = stack.pop(); end !== undefined; end = stack.pop()) {
      for (let i = at(starts, end); i < at(starts, end + 1); i++) {
        const source = at(sources, i);
        if (ends[source] === 1) continue;
        ends[source] = 1;
        stack.push(source);
      }
    }
    const trap = ends.indexOf(0);
    return trap < 0 ? null : trap;
  }

  #pathTo(number: number): number[] {
    const path: number[] = [];
    for (let at = number; at > 0; at = this.#parents[at] ?? 0) path.push(this.#ways[at] ?? 0);
    return path.reverse();
  }

  #found(promise: string | null, path: readonly number[]): Walk {
    return {
      states: this.#parents.length,
      transitions: this.#edges.length / 2,
      depth: this.#depths.at(-1) ?? 0,
      phases: this.#phases,
      happened: this.#happened,
      broken: promise === null ? null : { promise, story: this.#story(path, promise) },
    };
  }

  /** The way to a broken promise, step by step: what happened, and what the session did. */
  #story(path: readonly number[], promise: string): string {
    const lines = [`${this.#scenario.name}:`];
    try {
      let node = startNode(this.#scenario, this.#protocol);
      for (const [i, way] of path.entries()) {
        const action = actionsOf(this.#scenario, node.state, node.world)[way];
        if (action === undefined) break;
        lines.push(`${String(i + 1).padStart(3)}. ${action.story}`);
        const next = follow(this.#scenario, this.#protocol, node, action);
        if (next === null) break;
        for (const command of next.commands) lines.push(`       the session: ${inWords(command)}`);
        node = next.node;
      }
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
    }
    return [...lines, `  => ${promise}`].join('\n');
  }
}

function inWords(command: Command): string {
  switch (command.kind) {
    case 'cancel':
      return `stop command ${command.seq}`;
    case 'close':
      return `close, ${command.result.status}`;
    case 'describe':
      return 'ask the worker what the agent is';
    case 'load':
      return 'load a checkpoint';
    case 'continue':
      return 'go on in a new run';
    default:
      return command.summary;
  }
}

function inJSON(input: PersonInput): string {
  return `${input.type} ${JSON.stringify(input.type === 'malformed' ? input.type : input.value)}`;
}

const YES = { text: 'sure?', output: 'yes', by: 'ann', at: '' };

/** Inputs that this state must refuse. */
function refusable(state: SessionState): PersonInput[] {
  const inputs: PersonInput[] = [];
  for (const call of state.calls) {
    const { id, status, argsDigest, dispatches } = call;
    if (status.kind === 'approval' && status.question !== undefined) {
      // Of the arguments alone, of another question, or no answer.
      const others = [argsDigest, seenDigest({ ...call, answers: [...(call.answers ?? []), YES] })];
      for (const digest of others)
        inputs.push({
          type: 'decide',
          value: { callId: id, argsDigest: digest, decision: { decision: 'respond', output: 'yes' } },
        });
      const value = { callId: id, argsDigest: seenDigest(call) };
      inputs.push({ type: 'decide', value: { ...value, decision: { decision: 'approve' } } });
    }
    const approve = { decision: 'approve' } as const;
    if (status.kind !== 'approval') {
      inputs.push({ type: 'decide', value: { callId: id, argsDigest, decision: approve } });
    } else {
      inputs.push({ type: 'decide', value: { callId: id, argsDigest: 'of others', decision: approve } });
    }
    const absent = { outcome: 'absent' } as const;
    const dispatchNo = dispatches.at(-1)?.no ?? 0;
    if (status.kind === 'unknown' || status.kind === 'stuck') {
      // Said of an earlier dispatch, or of other arguments.
      const earlier = { callId: id, argsDigest, dispatchNo: dispatchNo - 1, resolution: absent };
      inputs.push({ type: 'resolve', value: earlier });
      const others = { callId: id, argsDigest: 'of others', dispatchNo, resolution: absent };
      inputs.push({ type: 'resolve', value: others });
    } else {
      inputs.push({ type: 'resolve', value: { callId: id, argsDigest, dispatchNo, resolution: absent } });
    }
  }
  if (state.status.kind !== 'active') {
    inputs.push(
      { type: 'send', value: { text: 'too late' } },
      { type: 'resume', value: {} },
      { type: 'cancel', value: {} },
    );
  } else if (state.cancelling !== null) inputs.push({ type: 'send', value: { text: 'too late' } });
  return inputs;
}

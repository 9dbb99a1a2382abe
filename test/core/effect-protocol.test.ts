/** Every interleaving of small sessions with the world: see the promises in checker/invariants.ts. */
import { afterAll, describe, expect, test } from 'vitest';
import { explore, type Walk } from './checker/explore.ts';
import { FAULTS } from './checker/faults/index.ts';
import type { Scenario } from './checker/scenario.ts';
import { SCENARIOS } from './checker/scenarios.ts';

/** A checker that walks less than this has lost something to walk. */
const STATES_AT_LEAST = 100_000;

const walks: Walk[] = [];

describe('the effect protocol keeps its promises', () => {
  test.each(SCENARIOS)('over all interleavings: $name', (scenario) => {
    const walk = explore(scenario);
    walks.push(walk);
    expect(walk.broken?.story).toBeUndefined();
  });

  test('in at least a hundred thousand states, of all phases, in which everything happened', () => {
    const phases = new Set(walks.flatMap((walk) => Object.keys(walk.phases)));
    const all = ['starting', 'idle', 'thinking', 'acting', 'approval', 'unknown_effect', 'waiting', 'paused'];
    expect([...phases].sort()).toEqual([...all, 'cancelling', 'closed'].sort());
    const happened = new Set(walks.flatMap((walk) => [...walk.happened]));
    expect([...happened]).toEqual(expect.arrayContaining(EVERYTHING));
    expect(walks.reduce((sum, { states }) => sum + states, 0)).toBeGreaterThanOrEqual(STATES_AT_LEAST);
  });

  test('but lets an effect land twice when a lost dispatch can land after its settle time', () => {
    const scenario = {
      name: 'without the settle assumption',
      tools: { pay: {} },
      replies: [[{ tool: 'pay', args: { to: 'a' } }]],
      may: {},
      landsForEver: true,
    } as const;
    const { broken } = explore(scenario);
    expect(broken?.promise).toBe('the effect of pay {"to":"a"} has landed 2 times');
    expect(broken?.story.split('\n').map((line) => line.trim())).toEqual([
      'without the settle assumption:',
      '1. the worker says what the agent is',
      'the session: turn 1',
      '2. the model asks for 1 calls',
      'the session: pay call_1_0',
      "3. call_1_0's worker is lost before its effect",
      'the session: pay call_1_0 settles',
      '4. the settle timer of call_1_0 fires',
      'the session: verify pay call_1_0',
      '5. verify of call_1_0 says absent',
      'the session: pay call_1_0, dispatch 2',
      expect.stringMatching(/^6\. (the lost dispatch of call_1_0 lands late|call_1_0 has its effect)$/),
      expect.stringMatching(/^7\. (the lost dispatch of call_1_0 lands late|call_1_0 has its effect)$/),
      '=> the effect of pay {"to":"a"} has landed 2 times',
    ]);
  });
});

/** Whether the protocol keeps its promises in a scenario. Faults share scenarios: each is walked once. */
const kept = new Map<string, boolean>();
function isKept(scenario: Scenario): boolean {
  const name = JSON.stringify(scenario);
  const known = kept.get(name) ?? explore(scenario).broken === null;
  kept.set(name, known);
  return known;
}

describe('the checker notices when', () => {
  test.each(FAULTS)('$name', ({ scenario, protocol, breaks }) => {
    const { broken } = explore(scenario, protocol);
    expect(broken?.promise).toMatch(breaks);
    // The story ends with the promise, and the same walk without the fault has none to tell.
    expect(broken?.story).toMatch(breaks);
    expect(isKept(scenario)).toBe(true);
  });
});

afterAll(() => {
  const states = walks.reduce((sum, walk) => sum + walk.states, 0);
  const transitions = walks.reduce((sum, walk) => sum + walk.transitions, 0);
  process.stdout.write(
    `effect protocol: ${states} states, ${transitions} transitions, ${walks.length} walks\n`,
  );
});

/** What must have happened in some walk: a world in which less happens proves less. */
const EVERYTHING = [
  'the worker says what the agent is',
  'the worker has no such agent',
  'the worker does not say what the agent is',
  'the worker has another definition',
  'the model asks for 2 calls',
  'the model answers',
  'the model call is lost',
  'the model call never started',
  'the model call fails: interrupted',
  'the model call fails: provider_unavailable',
  'a call has its effect',
  'a call returns',
  'a call asks a person',
  "a call's worker is lost before its effect",
  "a call's worker is lost after its effect",
  'a call throws before its effect',
  'a call throws after its effect',
  'a call throws',
  'a call says that it was not attempted',
  'a call says that it was not attempted and never will be',
  'a call finds no tool on the worker',
  'a call is handed back by a worker that shuts down',
  'a call is cut short by a worker that shuts down',
  'this is a checkpoint',
  'a person rewinds the session to the checkpoint',
  'the run is terminated, and a person rewinds the session to the checkpoint',
  'a person forks the session at the checkpoint',
  'the dispatch of a call by another session ends before its effect',
  'a call was cancelled before it started',
  'a call was cancelled',
  'the lost dispatch of a call lands late',
  'the settle timer of a call fires',
  'the backoff timer of a call fires',
  'the approval of a call expires',
  'verify of a call says landed',
  'verify of a call says absent',
  'verify of a call cannot tell',
  'verify of a call is lost',
  'the edited arguments of a call fit',
  'the edited arguments of a call do not fit',
  "the check of a call's arguments is lost",
  "the check of a call's arguments never started",
  'the reads return, and no model is asked',
  'no read returns, and no model is asked',
  'a call return',
  'a call throw',
  'a call are lost',
  'the first of a call ended, the others were cancelled',
  'a call were cancelled before they started',
  "a call's effect has certainly failed",
  'a call hears that its effect waits for a person',
  "a call's look is lost",
  "a call's effect has no outcome yet",
  "a call's effect has happened",
  'a call finds no effect',
  'a call finds no tool',
  'a call hears that it may look',
  'the recheck timer of a call fires',
  'a global effect happens in its own workflow',
  "a call's sub-agent works",
  "a call's sub-agent answers",
  "a call's sub-agent is deleted",
  "a call's sub-agent has ended",
  "a call's sub-agent reports",
  "a call's sub-agent reports again",
  "a call's look at its sub-agent is lost",
  'sub-agents are told',
  'the past is stored',
  'the past is not stored any more',
  'the past cannot be stored',
  'the next run begins',
  'a call is answered from an earlier run',
  'a person sends "queue 1"',
  'a person sends "interrupt 1"',
  'a person pauses',
  'a person pauses now',
  'a person resumes',
  'a person cancels',
  'a person seals the session',
  'a person raises the caps',
  'a person lets it finish',
  'a person approves a call',
  'a person edits a call',
  'a person rejects a call',
  'a person answers a call',
  'a person says that a call landed',
  'a person says that a call absent',
  'a person says that a call failed',
];

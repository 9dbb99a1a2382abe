/** Faults of dispatching: what is run, how often, and what it is said to have come to. */
import { callIn, deciding, evolving, instead, taking } from '../faulty.ts';
import type { Scenario } from '../scenario.ts';
import { type Fault, one, pay, reading } from './fault.ts';

const twice: Scenario = { ...one, name: 'one mutation twice', replies: [[pay, pay]] };
const shared: Scenario = {
  ...one,
  name: 'one global mutation',
  tools: { pay: { scope: 'global' } },
  may: { unavailable: 1, cancel: 1 },
};
const lostRead: Scenario = { ...reading, name: 'one read that is lost', may: { readFault: 1 } };
const ordered: Scenario = {
  ...one,
  name: 'a read, an idempotent call and a mutation in order',
  tools: { look: { effect: 'read' }, note: { effect: 'idempotent' }, pay: {} },
  replies: [[{ tool: 'look', args: {} }, { tool: 'note', args: {} }, pay]],
};

const delegated: Scenario = {
  ...one,
  name: 'one sub-agent',
  tools: { pay: { agent: { name: 'helper' } } },
  may: { cancel: 1 },
};

const inBackground: Scenario = {
  ...one,
  name: 'one sub-agent in the background',
  tools: { pay: { agent: { name: 'helper', background: 'wait' } } },
  may: { unavailable: 1, cancel: 1 },
};

export const DISPATCHES: readonly Fault[] = [
  {
    name: 'a session ends over a sub-agent that works',
    scenario: delegated,
    protocol: instead('awaiting', { kind: 'failed', certain: false }),
    breaks: /has ended before its sub-agent/,
  },
  {
    name: 'a report of a sub-agent in the background is lost',
    scenario: inBackground,
    protocol: evolving((state, input, evolve) => {
      const refusal = evolve();
      if (input.type === 'child_done') state.inbox = state.inbox.filter(({ report }) => report === undefined);
      return refusal;
    }),
    breaks: /and the model is told: $/,
  },
  {
    name: 'a task ends while a sub-agent works in the background',
    scenario: inBackground,
    protocol: deciding((state, decide, moment) => {
      const children = state.children ?? [];
      delete state.children;
      const step = decide(state, moment);
      state.children = children;
      return step;
    }),
    breaks: /has ended before its sub-agent/,
  },
  {
    name: 'the failure of a sub-agent counts as its answer',
    scenario: delegated,
    protocol: evolving((state, input, evolve) => {
      const refusal = evolve();
      const failed = callIn(state, 'failed');
      if (input.type === 'child_done' && failed !== undefined) failed.status = { kind: 'completed' };
      return refusal;
    }),
    breaks: /is completed, but nothing has landed/,
  },
  {
    name: 'a lost dispatch is simply run again',
    scenario: one,
    protocol: instead('settling', { kind: 'ready' }),
    breaks: /dispatched without a recorded absent/,
  },
  {
    name: 'a lost dispatch counts as certainly failed',
    scenario: one,
    protocol: instead('settling', { kind: 'failed', certain: true }),
    breaks: /is certain to have failed, but its effect (has landed|may land)/,
  },
  {
    name: 'a lost dispatch counts as done',
    scenario: one,
    protocol: instead('settling', { kind: 'completed' }),
    breaks: /is completed, but nothing has landed/,
  },
  {
    name: 'verify cannot tell, and that is taken as absent',
    scenario: one,
    protocol: instead('unknown', { kind: 'ready' }),
    breaks: /dispatched without a recorded absent/,
  },
  {
    name: 'nobody waits for what is lost to settle',
    scenario: one,
    protocol: deciding((state, decide, moment) => {
      const call = callIn(state, 'settling');
      return call === undefined ? decide(state, moment) : { type: 'release_call', callId: call.id };
    }),
    breaks: /is certain to have failed, but its effect may land/,
  },
  {
    name: 'a call is dispatched while verify is looking',
    scenario: one,
    protocol: deciding((state, decide, moment) => {
      const step = decide(state, moment);
      const call = callIn(state, 'verifying');
      if (step !== null || call === undefined) return step;
      call.status = { kind: 'ready' };
      return decide(state, moment);
    }),
    breaks: /dispatched without a recorded absent/,
  },
  {
    name: 'an equal call does not wait for the one in flight',
    scenario: { ...twice, manifest: { toolOrder: 'parallel' } },
    protocol: deciding((state, decide, moment) => {
      const step = decide(state, moment);
      if (step?.type !== 'defer_call') return step;
      for (const call of state.calls) call.scope = 'call';
      return decide(state, moment);
    }),
    breaks: /two dispatches of one key are in flight at once/,
  },
  {
    name: 'an equal call is not answered from the record',
    scenario: twice,
    protocol: deciding((state, decide, moment) => {
      const step = decide(state, moment);
      if (step?.type !== 'replay_call') return step;
      for (const call of state.calls) call.scope = 'call';
      return decide(state, moment);
    }),
    breaks: /dispatched although its effect is on record/,
  },
  {
    name: 'a mutation does not wait for the calls before it',
    scenario: ordered,
    protocol: deciding((state, decide, moment) => {
      const { manifest } = state;
      if (manifest !== null) state.manifest = { ...manifest, toolOrder: 'parallel' };
      const step = decide(state, moment);
      if (manifest !== null) state.manifest = manifest;
      return step;
    }),
    breaks: /dispatched out of its order/,
  },
  {
    name: 'an idempotent call runs beside a read',
    scenario: ordered,
    protocol: deciding((state, decide, moment) => {
      const note = state.calls.find(({ effect }) => effect === 'idempotent');
      if (note === undefined) return decide(state, moment);
      note.effect = 'read';
      const step = decide(state, moment);
      note.effect = 'idempotent';
      return step;
    }),
    breaks: /call_1_0 was dispatched out of its order with call_1_1/,
  },
  {
    name: 'the server may repeat a mutation',
    scenario: one,
    protocol: taking((_state, _step, take) => {
      const command = take();
      return command?.kind === 'tool' ? { ...command, maxAttempts: 2 } : command;
    }),
    breaks: /the server may repeat/,
  },
  {
    name: 'a call that is held back has no timer',
    scenario: one,
    protocol: deciding((state, decide, moment) => {
      const step = decide(state, moment);
      return step?.type === 'issue' && step.command.kind === 'timer' && callIn(state, 'backoff')
        ? null
        : step;
    }),
    breaks: /nothing is in flight and nobody is asked, in phase acting/,
  },
  {
    name: 'a read that was lost before a reply is not run again',
    scenario: lostRead,
    protocol: deciding((state, decide, moment) => {
      const step = decide(state, moment);
      return step?.type === 'issue' && step.command.kind === 'reads' ? null : step;
    }),
    breaks: /nothing is in flight and nobody is asked, in phase acting/,
  },
  {
    name: 'a cancelled session says that a global effect did not happen',
    scenario: shared,
    protocol: taking((state, step, take) => {
      const command = take();
      const call = step.type === 'skip_call' && state.calls.find(({ id }) => id === step.callId);
      if (call)
        Object.assign(call, { status: { kind: 'skipped' }, result: { content: 'no', isError: true } });
      return command;
    }),
    breaks: /is skipped, but its effect (has landed|may land)/,
  },
  {
    name: 'a lost wait for a global effect counts as certainly failed',
    scenario: shared,
    protocol: instead('awaiting', { kind: 'failed', certain: true }),
    breaks: /is certain to have failed, but its effect (has landed|may land)/,
  },
];

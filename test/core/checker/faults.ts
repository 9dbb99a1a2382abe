/** Protocols with one thing wrong: what the checker must notice. */
import { callIn, deciding, evolving, forgetting, instead, taking } from './faulty.ts';
import type { Protocol } from './node.ts';
import type { PlannedCall, Scenario } from './scenario.ts';

/** A fault, a walk in which it shows, and the promise that it breaks. */
export interface Fault {
  name: string;
  scenario: Scenario;
  protocol: Protocol;
  breaks: RegExp;
}

const pay: PlannedCall = { tool: 'pay', args: { to: 'a' } };
const one: Scenario = { name: 'one mutation', tools: { pay: {} }, replies: [[pay]], may: {} };
const twice: Scenario = { ...one, name: 'one mutation twice', replies: [[pay, pay]] };
const asked: Scenario = {
  ...one,
  name: 'one mutation with an approval',
  replies: [[{ ...pay, needsApproval: true }]],
};
const reading: Scenario = {
  ...one,
  name: 'one read',
  tools: { look: { effect: 'read' } },
  replies: [[{ tool: 'look', args: {} }]],
};
const capped: Scenario = { ...reading, budget: { usd: 0.004 }, may: { modelFault: 2 } };

const shared: Scenario = {
  ...one,
  name: 'one global mutation',
  tools: { pay: { scope: 'global' } },
  may: { unavailable: 1, cancel: 1 },
};
const local: Scenario = {
  ...reading,
  name: 'one local read',
  tools: { look: { effect: 'read', fast: true } },
};

const rewound: Scenario = {
  ...one,
  name: 'one mutation and a rewind',
  tools: { pay: { maxAttempts: 1 } },
  dispatches: 1,
};

export const FAULTS: readonly Fault[] = [
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
    name: 'the server may repeat a mutation',
    scenario: one,
    protocol: taking((_state, _step, take) => {
      const command = take();
      return command?.kind === 'tool' ? { ...command, maxAttempts: 2 } : command;
    }),
    breaks: /the server may repeat/,
  },
  {
    name: 'an approval is not waited for',
    scenario: asked,
    protocol: instead('approval', { kind: 'ready' }),
    breaks: /dispatched without the approval/,
  },
  {
    name: 'a decision is taken twice',
    scenario: asked,
    protocol: evolving((state, input, evolve) => {
      if (input.type === 'decide') {
        const call = state.calls.find(({ id }) => id === input.value.callId);
        if (call !== undefined && call.decision !== null) call.status = { kind: 'approval', expiresAt: null };
      }
      return evolve();
    }),
    breaks: /decide .* was accepted, but is out of its time/,
  },
  {
    name: 'edited arguments keep the key of the former ones',
    scenario: { ...asked, may: { edit: 1 } },
    protocol: evolving((state, input, evolve) => {
      const keys = state.calls.map(({ idempotencyKey }) => idempotencyKey);
      const refusal = evolve();
      if (input.type === 'outcome' && input.outcome.kind === 'prepare') {
        for (const [i, call] of state.calls.entries()) call.idempotencyKey = keys[i] ?? '';
      }
      return refusal;
    }),
    breaks: /dispatched under the key of other arguments/,
  },
  {
    name: 'messages are taken and not appended',
    scenario: { ...one, may: { queue: 1 } },
    protocol: taking((state, step, take) => {
      if (step.type === 'take_messages') state.inbox.splice(1);
      return take();
    }),
    breaks: /the messages sent are .*, those in the session are/,
  },
  {
    name: 'messages are appended twice',
    scenario: one,
    protocol: taking((state, step, take) => {
      const first = step.type === 'take_messages' ? state.inbox[0] : undefined;
      const command = take();
      if (first !== undefined && state.position.count < 3) state.inbox.push({ ...first, id: 'again' });
      return command;
    }),
    breaks: /the messages sent are .*, those in the session are/,
  },
  {
    name: 'messages come between calls and their results',
    scenario: { ...one, may: { queue: 1 } },
    protocol: deciding((state, decide, moment) =>
      state.inbox.length > 0 && state.manifest !== null ? { type: 'take_messages' } : decide(state, moment),
    ),
    breaks: /a message of the user came before the results/,
  },
  {
    name: 'a result is left out',
    scenario: { ...one, replies: [[pay, { tool: 'pay', args: { to: 'b' } }]] },
    protocol: taking((state, step, take) => {
      if (step.type === 'append_results') state.batch.pop();
      return take();
    }),
    breaks: /results of .* answer calls/,
  },
  {
    name: 'the reserve of a lost model call is kept',
    scenario: { ...capped, budget: { usd: 1 } },
    protocol: evolving((state, input, evolve) => {
      const { nanoUsd } = state.budget.reserved;
      const refusal = evolve();
      if (input.type === 'outcome' && input.outcome.kind === 'model' && !input.outcome.result.ok) {
        state.budget.reserved.nanoUsd = nanoUsd;
      }
      return refusal;
    }),
    breaks: /nano-dollars and .* tokens are reserved, in flight are/,
  },
  {
    name: 'a budget is only looked at when it is used up',
    scenario: capped,
    protocol: deciding((state, decide, moment) => {
      const { usd, ...limits } = state.budget.limits;
      if (usd === undefined || state.budget.spent.nanoUsd >= usd * 1e9) return decide(state, moment);
      const all = state.budget.limits;
      state.budget.limits = limits;
      const step = decide(state, moment);
      state.budget.limits = all;
      return step;
    }),
    breaks: /dollars are spent or reserved, the cap is/,
  },
  {
    name: 'a second pause is recorded as another',
    scenario: { ...one, may: { pause: 1, pauseNow: 1 } },
    protocol: evolving((state, input, evolve) => {
      if (input.type === 'pause' && state.paused !== null) {
        state.pauses.push({ pausedAt: state.createdAt, resumedAt: null, by: 'again' });
      }
      return evolve();
    }),
    breaks: /pauses are on record/,
  },
  {
    name: 'a pause holds nothing up',
    scenario: { ...one, may: { pause: 1 } },
    protocol: deciding((state, decide, moment) => {
      const { paused } = state;
      state.paused = null;
      const step = decide(state, moment);
      state.paused = paused;
      return step;
    }),
    breaks: /call was issued while the session is paused/,
  },
  {
    name: 'a cancelled session gives up on a mutation in flight',
    scenario: { ...one, may: { cancel: 1 } },
    protocol: deciding((state, decide, moment) => {
      const running = state.cancelling === null ? undefined : callIn(state, 'running');
      return running === undefined
        ? decide(state, moment)
        : { type: 'skip_call', callId: running.id, reason: 'cancelled' };
    }),
    breaks: /is skipped, but its effect may land|has ended, but it is in flight/,
  },
  {
    name: 'a cancelled session does not close',
    scenario: { ...one, may: { cancel: 1 } },
    protocol: deciding((state, decide, moment) => {
      const step = decide(state, moment);
      return step?.type === 'close' && state.cancelling !== null ? null : step;
    }),
    breaks: /the session was cancelled, nothing is in flight, and it is cancelling/,
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
    name: 'a person is never heard on an unknown outcome',
    scenario: { ...one, tools: { pay: { verify: false } } },
    protocol: evolving((_state, input, evolve) => (input.type === 'resolve' ? null : evolve())),
    breaks: /was accepted, but is out of its time|can never come to its end/,
  },
  {
    name: 'resuming brings a waiting session nowhere',
    scenario: { ...reading, may: { modelFault: 3 } },
    protocol: evolving((state, input, evolve) => {
      const { wait } = state;
      const refusal = evolve();
      if (input.type === 'resume') state.wait = wait;
      return refusal;
    }),
    breaks: /can never come to its end/,
  },
  {
    name: 'a rewind forgets what has happened',
    scenario: { ...rewound, may: { checkpoint: 1, rewind: 1 } },
    protocol: forgetting(({ doubt }) => doubt === undefined),
    breaks: /dispatched although its effect is on record/,
  },
  {
    name: 'a rewind forgets what is in doubt',
    scenario: { ...rewound, may: { checkpoint: 1, terminate: 1 } },
    protocol: forgetting(({ doubt }) => doubt !== undefined),
    breaks: /dispatched without a recorded absent/,
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
    protocol: instead('stuck', { kind: 'failed', certain: true }),
    breaks: /is certain to have failed, but its effect (has landed|may land)/,
  },
  {
    name: 'a local read that was too slow is not run again',
    scenario: local,
    protocol: deciding((state, decide, moment) => {
      const step = decide(state, moment);
      return step?.type === 'issue' && step.command.kind === 'tool' ? null : step;
    }),
    breaks: /nothing is in flight and nobody is asked, in phase acting/,
  },
  {
    name: 'the second of two inputs in one activation is lost',
    scenario: { ...one, may: { queue: 1, pause: 1 }, together: 3 },
    protocol: evolving((state, input, evolve) => {
      const { inbox } = state;
      const refusal = evolve();
      if (input.type === 'send' && state.paused !== null) state.inbox = inbox.slice(0, -1);
      return refusal;
    }),
    breaks: /the messages sent are .*, those in the session are/,
  },
  {
    name: 'a sealed session goes on',
    scenario: { ...one, may: { seal: 1 } },
    protocol: deciding((state, decide, moment) => {
      const { sealed } = state;
      state.sealed = null;
      const step = decide(state, moment);
      state.sealed = sealed;
      return step;
    }),
    breaks: /was issued by a session that is sealed/,
  },
  {
    name: 'an interrupted session starts and stops the same timer for ever',
    scenario: { ...one, may: { interrupt: 1 } },
    protocol: deciding((state, decide, moment) => {
      const timer = state.inFlight.find(({ kind }) => kind === 'backoff');
      if (state.interrupted && timer !== undefined) return { type: 'stop', seq: timer.seq };
      const { interrupted } = state;
      state.interrupted = interrupted && callIn(state, 'backoff') === undefined;
      const step = decide(state, moment);
      state.interrupted = interrupted;
      return step;
    }),
    breaks: /does not come to rest|issued and stopped in one activation/,
  },
];

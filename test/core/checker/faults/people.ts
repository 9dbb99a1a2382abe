/** Faults of what people have a say in: approvals, pauses, interrupts, an end, an open outcome. */
import { callIn, deciding, evolving, instead } from '../faulty.ts';
import type { Scenario } from '../scenario.ts';
import { type Fault, one, pay, reading } from './fault.ts';

const asked: Scenario = {
  ...one,
  name: 'one mutation with an approval',
  replies: [[{ ...pay, needsApproval: true }]],
};

const byTwo: Scenario = {
  ...asked,
  name: 'one mutation with an approval by two others',
  tools: { pay: { approval: { expiresMs: null, onExpiry: 'reject', people: 2, byAnother: true } } },
};

export const PEOPLE: readonly Fault[] = [
  {
    name: 'one of two people is enough',
    scenario: byTwo,
    protocol: evolving((state, _input, evolve) => {
      const refusal = evolve();
      for (const { approvers } of state.calls) if (approvers !== undefined) approvers.people = 1;
      return refusal;
    }),
    breaks: /without the approval|with 1 of 2 approvals/,
  },
  {
    name: 'who asked may approve',
    scenario: byTwo,
    protocol: evolving((state, _input, evolve) => {
      state.authors = [];
      return evolve();
    }),
    breaks: /was decided by who asked for it/,
  },
  {
    name: 'a name that nobody has verified counts',
    scenario: byTwo,
    protocol: evolving((_state, input, evolve) => {
      if (input.type === 'decide') input.value.verified = true;
      return evolve();
    }),
    breaks: /by somebody who is not verified/,
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
];

/** Faults of a session that is sealed, taken back or forked. */
import { effectNamespace } from '../../../../src/contract/keys.ts';
import { callIn, deciding, forgetting, planting, taking } from '../faulty.ts';
import { type Scenario, SESSION } from '../scenario.ts';
import { type Fault, one } from './fault.ts';

const rewound: Scenario = {
  ...one,
  name: 'one mutation and a rewind',
  tools: { pay: { maxAttempts: 1 } },
  dispatches: 1,
};

const rolling = { runTurns: 1, runsAtRest: true, runsInReads: true } as const;

const forked: Scenario = { ...rewound, name: 'one mutation and a fork', may: { checkpoint: 1, fork: 1 } };

export const TIME: readonly Fault[] = [
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
    name: 'a fork runs what was open where it began',
    scenario: forked,
    protocol: planting((state) => {
      for (const call of state.calls) if (call.status.kind === 'unknown') call.status = { kind: 'preparing' };
    }),
    breaks: /was open where this fork began, and was dispatched without a recorded absent/,
  },
  {
    name: 'a fork goes on under the keys of what it was taken from',
    scenario: forked,
    protocol: planting((state) => {
      state.namespace = effectNamespace(SESSION, 'r');
    }),
    breaks: /dispatched under the key of .* another session/,
  },
  {
    name: 'a run that ends forgets what is in doubt',
    scenario: {
      ...one,
      name: 'one mutation over runs',
      tools: { pay: { verify: false } },
      manifest: rolling,
    },
    protocol: taking((state, step, take) => {
      const command = take();
      const call = callIn(state, 'unknown');
      if (step.type === 'continue' && call !== undefined) call.status = { kind: 'ready' };
      return command;
    }),
    breaks: /dispatched without a recorded absent/,
  },
  {
    name: 'a run that ends forgets its timers, and the next one that it has to start them',
    scenario: { ...one, name: 'one mutation over runs', tools: { pay: {} }, manifest: rolling },
    protocol: taking((state, step, take) => {
      const flights = structuredClone(state.inFlight);
      const command = take();
      if (step.type === 'continue') state.inFlight = flights;
      return command;
    }),
    breaks: /the run ends while something is in flight/,
  },
  {
    name: 'a run that ends loses the messages that wait',
    scenario: { ...one, name: 'a message over runs', manifest: rolling, may: { queue: 1 } },
    protocol: taking((state, step, take) => {
      if (step.type === 'continue') state.inbox = [];
      return take();
    }),
    breaks: /the messages sent are/,
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
];

/** Faults of the conversation and its price: messages, results, the budget. */
import { deciding, evolving, taking } from '../faulty.ts';
import type { Scenario } from '../scenario.ts';
import { type Fault, one, pay, reading } from './fault.ts';

const capped: Scenario = { ...reading, budget: { usd: 0.004 }, may: { modelFault: 2 } };

export const CONVERSATION: readonly Fault[] = [
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
];

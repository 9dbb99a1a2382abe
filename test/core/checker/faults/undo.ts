/** Faults of undoing effects. */
import { taking } from '../faulty.ts';
import type { Scenario } from '../scenario.ts';
import { type Fault, one, pay } from './fault.ts';

const tools = { pay: { compensate: { verify: true }, maxAttempts: 1 } } as const;
const again = { ...pay, args: { to: 'b' } };
const undone: Scenario = {
  ...one,
  name: 'two mutations that are undone',
  tools,
  dispatches: 1,
  replies: [[pay, again]],
  may: { undo: 1 },
};
const rolled: Scenario = {
  ...undone,
  name: 'a mutation of an earlier run that is undone',
  manifest: { runTurns: 1 },
  replies: [[pay], [again]],
};

export const UNDO: readonly Fault[] = [
  {
    name: 'an undo forgets the effects of earlier runs',
    scenario: rolled,
    protocol: taking((state, step, take) => {
      const command = take();
      if (step.type === 'begin_undo' && state.undo !== undefined) state.undo.earlier = 0;
      return command;
    }),
    breaks: /the session closed, and nothing has undone/,
  },
  {
    name: 'effects are undone in the order in which they happened',
    scenario: undone,
    protocol: taking((state, step, take) => {
      const command = take();
      if (step.type === 'begin_undo') state.batch.reverse();
      return command;
    }),
    breaks: /was dispatched before the effects after its own were undone/,
  },
  {
    name: 'an effect is undone without an approval',
    scenario: undone,
    protocol: taking((state, step, take) => {
      const command = take();
      if (step.type !== 'begin_undo') return command;
      for (const call of state.calls) if (call.status.kind === 'approval') call.status = { kind: 'ready' };
      return command;
    }),
    breaks: /was dispatched without an approval/,
  },
];

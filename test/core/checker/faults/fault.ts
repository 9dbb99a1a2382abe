/** What a planted fault is, and the walks that several of them are planted in. */
import type { Protocol } from '../node.ts';
import type { PlannedCall, Scenario } from '../scenario.ts';

/** A fault, a walk in which it shows, and the promise that it breaks. */
export interface Fault {
  name: string;
  scenario: Scenario;
  protocol: Protocol;
  breaks: RegExp;
}

export const pay: PlannedCall = { tool: 'pay', args: { to: 'a' } };
export const one: Scenario = { name: 'one mutation', tools: { pay: {} }, replies: [[pay]], may: {} };
export const reading: Scenario = {
  ...one,
  name: 'one read',
  tools: { look: { effect: 'read' } },
  replies: [[{ tool: 'look', args: {} }]],
};

/** The walks of the checker: each a small session in which everything may happen that its chances allow. */
import type { PlannedCall, Scenario } from './scenario.ts';

const pay = (to: string, more: Partial<PlannedCall> = {}): PlannedCall => ({
  tool: 'pay',
  args: { to },
  ...more,
});
const look: PlannedCall = { tool: 'look', args: {} };
const approval = { needsApproval: true } as const;
const parallel = { toolOrder: 'parallel' } as const;

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'one mutation that can be verified, with messages and a cancellation',
    tools: { pay: {} },
    replies: [[pay('a')]],
    may: { queue: 1, interrupt: 1, cancel: 1 },
  },
  {
    name: 'one mutation that cannot be verified, with pauses',
    tools: { pay: { verify: false } },
    replies: [[pay('a')]],
    may: { pause: 1, pauseNow: 1, cancel: 1, unavailable: 1, released: 1 },
  },
  {
    name: 'two mutations in order',
    tools: { pay: {} },
    replies: [[pay('a'), pay('b')]],
    may: { interrupt: 1 },
  },
  {
    name: 'two mutations at once',
    tools: { pay: {} },
    manifest: parallel,
    replies: [[pay('a'), pay('b')]],
    may: {},
  },
  {
    name: 'two mutations at once without verify, and a cancellation',
    tools: { pay: { verify: false, maxAttempts: 2 } },
    manifest: parallel,
    replies: [[pay('a'), pay('b')]],
    dispatches: 2,
    may: { cancel: 1 },
  },
  {
    name: 'the same mutation twice at once',
    tools: { pay: {} },
    manifest: parallel,
    replies: [[pay('a'), pay('a')]],
    may: { pause: 1, cancel: 1, interrupt: 1, unavailable: 1 },
  },
  {
    name: 'the same mutation twice at once, each with an approval',
    tools: { pay: { maxAttempts: 2 } },
    dispatches: 2,
    manifest: parallel,
    replies: [[pay('a', approval), pay('a', approval)]],
    may: { pause: 1, unavailable: 1 },
  },
  {
    name: 'the same mutation in two turns',
    tools: { pay: {} },
    replies: [[pay('a')], [pay('a')]],
    may: { queue: 1 },
  },
  {
    name: 'a read and a mutation',
    tools: { look: { effect: 'read' }, pay: {} },
    replies: [[look, pay('a')]],
    may: { pauseNow: 1, interrupt: 1, readFault: 1 },
  },
  {
    name: 'approvals, edits and their expiry',
    tools: { pay: { approval: { expiresMs: 60_000, onExpiry: 'reject' }, maxAttempts: 2 } },
    dispatches: 2,
    replies: [[pay('a', approval)]],
    may: { edit: 2, pauseNow: 1, cancel: 1, interrupt: 1 },
  },
  {
    name: 'approvals that expire into yes, of two calls',
    tools: { pay: { approval: { expiresMs: 60_000, onExpiry: 'approve' }, maxAttempts: 1 } },
    dispatches: 1,
    replies: [[pay('a', approval), pay('b', approval)]],
    may: { edit: 1, interrupt: 1 },
  },
  {
    name: 'a cap on tool calls',
    tools: { pay: { maxAttempts: 2 } },
    dispatches: 2,
    replies: [[pay('a'), pay('b')]],
    budget: { toolCalls: 1 },
    may: { raise: 1, cancel: 1, queue: 1 },
  },
  {
    name: 'caps on dollars, tokens and turns, uncounted',
    tools: { look: { effect: 'read' } },
    replies: [[look], [look]],
    budget: { usd: 0.004, tokens: 1_000, turns: 2 },
    usage: 'uncounted',
    may: { raise: 2, modelFault: 3, queue: 1, cancel: 1 },
  },
  {
    name: 'a chat whose model fails',
    mode: 'chat',
    tools: { look: { effect: 'read' } },
    replies: [[look]],
    may: { modelFault: 3, queue: 1, interrupt: 1, pauseNow: 1, readFault: 1 },
  },
  {
    name: 'a mutation before or after a checkpoint that the session is taken back to',
    tools: { pay: { maxAttempts: 2 } },
    replies: [[pay('a')], [pay('a')]],
    dispatches: 2,
    may: { checkpoint: 1, rewind: 1 },
  },
  {
    name: 'a mutation that cannot be verified, an interrupt, and a session that is taken back',
    tools: { pay: { verify: false, maxAttempts: 2 } },
    replies: [[pay('a')]],
    dispatches: 2,
    may: { checkpoint: 1, rewind: 1, interrupt: 1 },
  },
  {
    name: 'a run that is terminated, and its session taken back',
    tools: { pay: { maxAttempts: 2 } },
    replies: [[pay('a')], [pay('a')]],
    dispatches: 2,
    may: { checkpoint: 1, terminate: 1 },
  },
  {
    name: 'a pause and an approval at a checkpoint',
    tools: { pay: { approval: { expiresMs: 60_000, onExpiry: 'reject' }, maxAttempts: 1 } },
    dispatches: 1,
    replies: [[pay('a', approval)]],
    may: { checkpoint: 1, rewind: 1, pause: 1 },
  },
  {
    name: 'a model that asks for the same again and again',
    tools: { look: { effect: 'read' } },
    manifest: { loopLimit: 2 },
    replies: [[look], [look], [look]],
    may: { queue: 1, interrupt: 1, pause: 1, cancel: 1 },
  },
  {
    name: 'a seal',
    tools: { look: { effect: 'read' }, pay: { maxAttempts: 2 } },
    dispatches: 2,
    replies: [[look, pay('a')]],
    may: { seal: 1, cancel: 1, queue: 1 },
  },
  {
    name: 'equal calls that are meant',
    tools: { pay: { scope: 'call', maxAttempts: 2 } },
    manifest: parallel,
    dispatches: 2,
    replies: [[pay('a'), pay('a')]],
    may: {},
  },
  {
    name: 'two inputs in one activation',
    tools: { pay: { maxAttempts: 2, approval: { expiresMs: 60_000, onExpiry: 'approve' } } },
    dispatches: 2,
    replies: [[pay('a', approval)]],
    may: { edit: 1, pauseNow: 1, interrupt: 1, cancel: 1 },
    together: true,
  },
];

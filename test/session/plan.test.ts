import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, type JsonValue, type Session } from '../../src/index.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

interface Step {
  id: string;
  title: string;
  status: string;
  postconditions?: string[];
  evidence?: { postcondition: number; tool: string }[];
}

/** A session whose model sends these plans, one a turn, after it has called these tools in its first. */
async function planned(
  plans: { steps: unknown }[],
  tools: string[] = [],
): Promise<{ stage: Stage; session: Session; told: () => Promise<JsonValue[]> }> {
  const stage = await openStage(({ assistantCount }) => {
    if (tools.length > 0 && assistantCount === 0)
      return { toolCalls: tools.map((name) => ({ name, args: {} })) };
    const plan = plans[assistantCount - (tools.length > 0 ? 1 : 0)];
    return plan === undefined ? { text: 'planned' } : { toolCalls: [{ name: 'update_plan', args: plan }] };
  });
  const inputSchema = z.object({});
  await stage.startWorker([
    defineAgent({
      name: 'planner',
      model: stage.provider('m'),
      instructions: 'Plan.',
      plan: true,
      tools: {
        look: defineTool({ inputSchema, effect: 'read', execute: () => 'seen' }),
        fail: defineTool({
          inputSchema,
          effect: 'read',
          execute: () => {
            throw new Error('no');
          },
        }),
      },
    }),
  ]);
  const session = await stage.sessions.start('planner', { id: stage.id(), message: 'plan it' });
  await untilPhase(session, 'idle', 'waiting');
  const told = async (): Promise<JsonValue[]> =>
    (await session.calls()).items
      .filter(({ name }) => name === 'update_plan')
      .map(({ result }) => result?.content ?? null);
  return { stage, session, told };
}

const step = (more: Partial<Step> = {}): Step => ({ id: 's1', title: 'Look', status: 'pending', ...more });

test('a plan is kept in the state, and replaced by the next', async () => {
  const { stage, session, told } = await planned([
    { steps: [step(), step({ id: 's2', title: 'Tell' })] },
    { steps: [step({ status: 'in_progress' })] },
  ]);
  expect(await told()).toEqual(['The plan is updated.', 'The plan is updated.']);
  const plan = [{ id: 's1', title: 'Look', status: 'in_progress', postconditions: [], evidence: [] }];
  expect(await session.plan()).toEqual(plan);
  expect((await session.state()).plan).toEqual(plan);
  expect((await session.budget()).spent.toolCalls).toBe(0);
  const { checkpoints } = await expectSound(stage, session);
  expect(checkpoints.map((state) => state.plan.length)).toContain(2);
});

const PROOF = { postconditions: ['it was looked at'], status: 'done' };

test('a step that is done needs evidence: a call that completed, recorded with its id', async () => {
  const { stage, session, told } = await planned(
    [{ steps: [step({ ...PROOF, evidence: [{ postcondition: 0, tool: 'look' }] })] }],
    ['fail', 'look'],
  );
  expect(await told()).toEqual(['The plan is updated.']);
  expect(await session.plan()).toMatchObject([
    { status: 'done', evidence: [{ postcondition: 0, tool: 'look', call_id: 'call_1_1' }] },
  ]);
  await expectSound(stage, session);
});

const NEEDS =
  'step s1 is not done: postcondition 0 (it was looked at) needs evidence, the name of a tool of which a call has completed';

test.each<[string, { steps: unknown }, string]>([
  ['no evidence', { steps: [step(PROOF)] }, NEEDS],
  [
    'a tool that was never called',
    { steps: [step({ ...PROOF, evidence: [{ postcondition: 0, tool: 'pay' }] })] },
    NEEDS,
  ],
  [
    'a tool that failed',
    { steps: [step({ ...PROOF, evidence: [{ postcondition: 0, tool: 'fail' }] })] },
    NEEDS,
  ],
  [
    'the plan tool itself',
    { steps: [step({ ...PROOF, evidence: [{ postcondition: 0, tool: 'update_plan' }] })] },
    NEEDS,
  ],
  [
    'evidence of another postcondition',
    { steps: [step({ ...PROOF, evidence: [{ postcondition: 1, tool: 'look' }] })] },
    NEEDS,
  ],
  [
    'done without any postcondition',
    { steps: [step({ status: 'done' })] },
    'step s1 is not done: it has no postcondition',
  ],
  ['one step twice', { steps: [step(), step()] }, 'step s1 is listed twice'],
  ['a step without an id', { steps: [step({ id: '' })] }, 'steps.0.id: the minimum is 1'],
  [
    'an unknown status',
    { steps: [step({ status: 'finished' })] },
    'steps.0.status: expected one of "pending", "in_progress", "done"',
  ],
  ['no steps', {} as never, 'steps: is missing: expected array'],
  ['words', { steps: 'first look, then tell' }, 'steps: expected array'],
])('a plan with %s is refused, the model is told why, and the plan stays', async (_, plan, message) => {
  const { stage, session, told } = await planned(
    [{ steps: [step({ title: 'Before' })] }, plan],
    ['fail', 'look'],
  );
  expect(await told()).toEqual(['The plan is updated.', expect.stringContaining(message)]);
  expect(await session.plan()).toMatchObject([{ title: 'Before', status: 'pending' }]);
  expect((await session.calls()).items.at(-1)).toMatchObject({
    status: { kind: 'failed', certain: true },
    result: { isError: true },
  });
  await expectSound(stage, session);
});

test('an edit of the plan keeps the evidence of the steps that it leaves as they are, and claims none for others', async () => {
  const postconditions = ['it was looked at', 'it was seen'];
  const evidence = postconditions.map((_, postcondition) => ({ postcondition, tool: 'look' }));
  const steps = ['s1', 's2', 's3'].map((id) => step({ id, status: 'done', postconditions, evidence }));
  const { stage, session } = await planned([{ steps }], ['look']);
  const [first, second, third] = await session.plan();
  if (first === undefined || second === undefined || third === undefined) return expect.fail('no plan');
  const proof = (call_id: string, tool = 'look') => ({ tool, call_id });
  const edits = {
    plan: [
      { ...third, evidence: [{ postcondition: 0, tool: 'fail' }] },
      { ...second, postconditions: ['it was seen', 'it was bought'] },
      { ...first, title: 'Look twice' },
      { ...first, id: 's4' },
    ],
  };
  await session.edit(edits);
  const edited = await session.plan();
  expect(edited).toMatchObject([
    { id: 's3', evidence: [{ postcondition: 0, ...proof('', 'fail') }] },
    // By its words: the second postcondition is the first now.
    {
      id: 's2',
      evidence: [
        { postcondition: 0, ...proof('call_1_0') },
        { postcondition: 1, ...proof('') },
      ],
    },
    { id: 's1', title: 'Look twice', evidence: [proof('call_1_0'), proof('call_1_0')] },
    { id: 's4', evidence: [proof(''), proof('')] },
  ]);
  const { state } = await expectSound(stage, session);
  expect(state?.plan).toEqual(edited);
});

/** The scratchpad directory: from the start of a session into its state and into every function of its tools. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, type Session, type ToolContext } from '../../src/index.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

/** A turn of a read, a fast read, and a mutation that is lost and found; notes what each function was given. */
async function turn(scratchpadRoot?: string): Promise<{
  stage: Stage;
  session: Session;
  given: Record<string, Pick<ToolContext, 'scratchpadRoot'>>;
}> {
  const stage = await openStage(({ assistantCount }) =>
    assistantCount === 0
      ? { toolCalls: ['look', 'peek', 'save'].map((name) => ({ name, args: {} })) }
      : { text: 'Done.' },
  );
  const given: Record<string, Pick<ToolContext, 'scratchpadRoot'>> = {};
  const note = (name: string, context: ToolContext): string => {
    given[name] = 'scratchpadRoot' in context ? { scratchpadRoot: context.scratchpadRoot } : {};
    return name;
  };
  const inputSchema = z.object({});
  const tools = {
    look: defineTool({ inputSchema, effect: 'read', execute: (_, context) => note('look', context) }),
    peek: defineTool({
      inputSchema,
      effect: 'read',
      execute: (_, context) => note('peek', context),
    }),
    save: defineTool({
      inputSchema,
      settle: 0,
      execute: (_, context): string => {
        throw new Error(`${note('save', context)}: the connection was lost`);
      },
      verify: (_, context) => ({ outcome: 'landed', output: note('verify', context) }),
    }),
  };
  await stage.startWorker([
    defineAgent({ name: 'writer', model: stage.provider('m'), instructions: 'Write.', tools }),
  ]);
  const session = await stage.sessions.start('writer', {
    id: stage.id(),
    message: 'go',
    ...(scratchpadRoot === undefined ? {} : { scratchpadRoot }),
  });
  await untilPhase(session, 'idle', 'waiting', 'unknown_effect');
  return { stage, session, given };
}

test('it is in the state, and in the context of execute and of verify', async () => {
  const root = '/srv/scratch/ticket 42';
  const { stage, session, given } = await turn(root);
  expect(given).toEqual({
    look: { scratchpadRoot: root },
    peek: { scratchpadRoot: root },
    save: { scratchpadRoot: root },
    verify: { scratchpadRoot: root },
  });
  expect(await session.state()).toMatchObject({ phase: 'idle', scratchpadRoot: root });
  const { state } = await expectSound(stage, session);
  expect(state?.scratchpadRoot).toBe(root);
  // The model knows what the tools tell it, and no more.
  expect(stage.model.requests.some(({ request }) => JSON.stringify(request.body).includes(root))).toBe(false);
});

test('a session without one has none anywhere', async () => {
  const { stage, session, given } = await turn();
  expect(given).toEqual({ look: {}, peek: {}, save: {}, verify: {} });
  expect((await session.state()).scratchpadRoot).toBeNull();
  await expectSound(stage, session);
});

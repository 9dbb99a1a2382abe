/** Questions of the model to a person. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import { askPerson, defineAgent } from '../../src/index.ts';
import { expectSound } from '../session/support/sound.ts';
import { decide } from '../support/decide.ts';
import { openStage, untilPhase } from '../support/stage.ts';

test('a question waits in the inbox, and the answer of a person is its result', async () => {
  const stage = await openStage(({ toolResults }) => {
    const answer = toolResults.at(-1);
    if (answer !== undefined) return { text: `seat: ${answer.text}` };
    return {
      toolCalls: [{ name: 'ask_person', args: { question: 'Which seat?', options: ['window', 'aisle'] } }],
    };
  });
  await stage.startWorker([
    defineAgent({
      name: 'trip',
      model: stage.provider('m'),
      instructions: 'Book it.',
      tools: { ask_person: askPerson({ answer: z.object({ seat: z.string() }), otherwise: 'any' }) },
    }),
  ]);
  const session = await stage.sessions.start('trip', {
    id: stage.id(),
    message: 'a seat',
    context: { tenant: stage.taskQueue },
  });
  await untilPhase(session, 'approval');
  const items = async (): Promise<unknown[]> =>
    (await stage.sessions.inbox({ tenant: stage.taskQueue })).items;
  await expect.poll(items).toMatchObject([
    {
      kind: 'question',
      reason: 'Which seat?',
      answers: [
        { answer: 'respond', command: expect.stringContaining('perdure respond') },
        { answer: 'approve', does: 'The model gets the default: "any"' },
        { answer: 'reject' },
      ],
      call: {
        question: {
          text: 'Which seat?',
          options: ['window', 'aisle'],
          answer: { type: 'object', properties: { seat: { type: 'string' } } },
          otherwise: 'any',
        },
      },
    },
  ]);
  await decide(session, 'call_1_0', { decision: 'respond', output: 'window' });
  const view = await untilPhase(session, 'idle');
  expect(view.lastText).toContain('window');
  await expectSound(stage, session);
});

test('a question that nobody answers in time has the answer of its author', async () => {
  const stage = await openStage(({ toolResults }) => {
    const answer = toolResults.at(-1);
    if (answer !== undefined) return { text: `seat: ${answer.text}` };
    return { toolCalls: [{ name: 'ask_person', args: { question: 'Which seat?' } }] };
  });
  await stage.startWorker([
    defineAgent({
      name: 'trip',
      model: stage.provider('m'),
      instructions: 'Book it.',
      tools: { ask_person: askPerson({ expires: '1s', otherwise: 'any' }) },
    }),
  ]);
  const session = await stage.sessions.start('trip', { id: stage.id(), message: 'a seat' });
  expect((await untilPhase(session, 'idle')).lastText).toContain('any');
});

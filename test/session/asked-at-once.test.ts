/** What comes while a session's first task is under way, in which it learns what its agent is. */
import { expect, test } from 'vitest';
import { defineAgent, type Session } from '../../src/index.ts';
import { openStage, type Stage, until } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

const SESSIONS = 12;

async function open(): Promise<{ stage: Stage; start: (message: string) => Promise<Session> }> {
  const stage = await openStage(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  const agent = defineAgent({ name: 'hearer', model: stage.provider('m'), instructions: 'Listen.' });
  await stage.startWorker([agent]);
  return { stage, start: (message) => stage.sessions.start('hearer', { id: stage.id(), message }) };
}

test('a session that is asked as soon as it is started fails no task of its workflow', async () => {
  const { stage, start } = await open();
  for (let i = 0; i < SESSIONS; i++) {
    const session = await start('one');
    let phase = '';
    while (phase !== 'idle') ({ phase } = await session.state());
    const { history } = await expectSound(stage, session);
    expect(history.events.filter(({ workflowTaskFailedEventAttributes: event }) => event)).toEqual([]);
  }
});

test('what a session is told as soon as it is started is where a replay finds it', async () => {
  const { stage, start } = await open();
  const told = async (_: unknown, i: number): Promise<string | null> => {
    const session = await start('one');
    const asking = session.state();
    if (i % 3 === 0) await session.pause({ by: 'ada' });
    if (i % 3 === 1) await Promise.all([session.send('two'), session.send('three')]);
    if (i % 3 === 2) await session.setBudget({ limits: { turns: 5 }, by: 'ada' });
    await asking;
    if (i % 3 === 0) await session.resume({ by: 'ada' });
    const { lastText: answer } = await until(
      session,
      ({ phase, queued, lastText }) => phase === 'idle' && queued === 0 && lastText !== null,
    );
    await expectSound(stage, session);
    return answer;
  };
  const answers = await Promise.all(Array.from({ length: SESSIONS }, told));
  expect(answers.filter((answer) => answer?.startsWith('heard ') !== true)).toEqual([]);
});

import type { FaultPoint } from './point.ts';

/** The tool throws after its effect has happened. */
export const toolThrows: FaultPoint = {
  name: 'tool-throws',
  about: 'The tool throws after its effect.',
  steps: ['landed'],
  // The model is told; the effect of an idempotent call has happened.
  fails: ['read'],
  inject: async (stage) => {
    await stage.startWorker();
    await stage.begin({ mode: 'throw' });
    const calledAt = new Map<string, number>();
    await stage.until(async (_, { session, task }) => {
      const [call] = (await (await stage.ownerOf(session))?.calls())?.items ?? [];
      calledAt.set(task.session, Date.parse(call?.dispatches[0]?.at ?? ''));
      return `${call?.dispatches[0]?.reason} ${JSON.stringify(call?.result?.content)}`.includes('planned:');
    });
    stage.strike('the log of every session has the planned error', calledAt);
  },
};

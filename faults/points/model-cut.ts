import type { FaultPoint } from './point.ts';

/** The model's connection breaks in the middle of an answer. */
export const modelCut: FaultPoint = {
  name: 'model-cut',
  about: 'The connection between worker and model breaks in the middle of a reply.',
  anyService: true,
  steps: ['model-answered'],
  inject: async (stage) => {
    await stage.startWorker();
    await stage.begin({ cutReply: stage.story.strike });
    const sessions = new Set(stage.actors.map(({ task }) => task.session));
    await stage.harness.model.waitFor((requests) => {
      for (const { outcome, digest } of requests) {
        if (outcome === 'fault:cut') sessions.delete(stage.requestsOf.get(digest) ?? '');
      }
      return sessions.size === 0;
    });
    stage.strike('the endpoint has cut a reply of every session');
  },
};

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
    const cutAt = new Map<string | undefined, number>();
    await stage.harness.model.waitFor((requests) => {
      for (const { outcome, digest, at } of requests) {
        if (outcome === 'fault:cut') cutAt.set(stage.requestsOf.get(digest)?.session, Date.parse(at));
      }
      return stage.actors.every(({ task }) => cutAt.has(task.session));
    });
    stage.strike('the endpoint has cut a reply of every session', cutAt);
  },
};

import { type FaultPoint, kill } from './point.ts';

/** The worker is killed around values that are as large as allowed, or larger. */
export const largeValues: FaultPoint = {
  name: 'large-values',
  about:
    'The worker is killed around a tool result of up to 5 MB and a reply of 1 MB, just under and over the limits; a reply over the limit comes first at the end.',
  anyService: true,
  // Steps at which a worker holds a large value.
  steps: ['model-answered', 'landed', 'returned'],
  oneTurn: true,
  inject: async (stage) => {
    const { step } = stage.story;
    const worker = await stage.startWorker({ holdAt: [step] });
    await stage.begin({ mode: 'large' });
    await stage.held(worker);
    const at = Date.now();
    stage.strike(`${await kill(worker)}, every session was held: ${step}`, at);
    await stage.startWorker();
  },
};

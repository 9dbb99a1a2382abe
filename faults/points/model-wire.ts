import type { FaultPoint } from './point.ts';

/** The model cannot be reached for a while, with requests on their way. */
export const modelWire: FaultPoint = {
  name: 'model-wire',
  about: 'The connection between worker and model is cut with the request on its way, and comes back.',
  anyService: true,
  steps: ['model-asked'],
  unseen: 1,
  oneTurn: true,
  inject: async (stage) => {
    const { model } = stage.harness;
    const wire = await stage.wire(`127.0.0.1:${model.port}`);
    wire.hold();
    await stage.startWorker({ modelUrl: model.url.replace(`127.0.0.1:${model.port}`, wire.address) });
    await stage.begin();
    for (const { task } of stage.actors) await wire.held(task.session);
    const at = Date.now();
    wire.cut();
    stage.strike(`${wire.broken} connections broken, every prompt was in them`, at);
    wire.mend();
  },
};

import type { FaultPoint } from './point.ts';

/** The request has left the worker and never arrives. */
export const requestLost: FaultPoint = {
  name: 'request-lost',
  about: 'The connection between worker and service breaks with the request on its way: it never arrives.',
  steps: ['gap'],
  // Their tools throw the connection's error, and the model is told.
  fails: ['read', 'idempotent'],
  oneTurn: true,
  inject: async (stage) => {
    const wire = await stage.wire(stage.lane.payments);
    wire.hold();
    await stage.startWorker({ env: { PAYMENTS_URL: `http://${wire.address}` } });
    await stage.begin();
    for (const { task } of stage.actors) {
      await wire.held(task.kind === 'read' ? 'GET /orders/1001' : `${task.tag}#1`);
    }
    const at = Date.now();
    wire.cut();
    stage.strike(`${wire.broken} connections broken, every request was in them`, at);
    wire.mend();
  },
};

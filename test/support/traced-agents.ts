/** The agents of the effect tests, in processes that export traces and metrics. */
import * as otel from '../../examples/telemetry/otel.ts';

export * from './effect-agents.ts';
// A build drops a module that nothing uses.
export const registered: object = otel;

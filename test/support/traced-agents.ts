/** The agents of the effect tests, in processes that export traces and metrics. */
import * as otel from '../../examples/telemetry/otel.ts';

export * from './effect-agents.ts';
// Without a use of it, a build drops the module.
export const registered: object = otel;

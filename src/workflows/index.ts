/** The sandbox's door: what a worker registers, and what a workflow of your own may import. */

export type * from '../contract/archive.ts';
export type * from '../contract/edit.ts';
export type * from '../contract/inputs.ts';
export type { JsonObject, JsonValue } from '../contract/json.ts';
export type { LazySchema } from '../contract/lazy-schema.ts';
export type * from '../contract/manifest.ts';
export type * from '../contract/messages.ts';
export type * from '../contract/origin.ts';
export type { PlanInput } from '../contract/plan.ts';
export type * from '../contract/thread.ts';
export { archiveExporter } from './archive.ts';
export { agentSession } from './session.ts';
export type { IssuedCall, PerdureSinks, TranscriptPiece } from './sinks.ts';
export { checkpointSegment, checkpointThread } from './thread.ts';

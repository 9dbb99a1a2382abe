/** The sandbox's door: what a worker registers, and what a workflow of your own may import. */

export type { PerdureSinks, TranscriptPiece } from './memory-sink.ts';
export { agentSession } from './session.ts';

/** The sandbox's door: what a worker registers, and what a workflow of your own may import. */

export type { SessionInput, SessionResult } from '../contract/inputs.ts';
export type { Message, Position } from '../contract/messages.ts';
export type { PerdureSinks, TranscriptPiece } from './memory-sink.ts';
export { agentSession } from './session.ts';
export { checkpointSegment, checkpointThread } from './thread.ts';

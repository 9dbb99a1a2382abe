export { Session } from './session.ts';
export { type SessionSummary, Sessions } from './sessions.ts';
export type { ForkOptions, StartOptions } from './start-options.ts';
export type { StreamPart } from './stream.ts';

export { Session } from './session.ts';
export { type ForkOptions, type SessionSummary, Sessions, type StartOptions } from './sessions.ts';
export type { StreamPart } from './stream.ts';

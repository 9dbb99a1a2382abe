export type { SessionListOptions, SessionSummary } from '../temporal/visibility.ts';
export { Session, type SessionReading } from './session.ts';
export { Sessions, type StartedAgent } from './sessions.ts';
export type { ForkOptions, StartOptions } from './start-options.ts';
export type { StreamPart } from './stream.ts';

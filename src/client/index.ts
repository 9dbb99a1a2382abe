export type { SessionListOptions, SessionSummary } from '../temporal/visibility.ts';
export type { StartedAgent } from './checks.ts';
export { Session, type SessionReading } from './session.ts';
export { Sessions } from './sessions.ts';
export type { ForkOptions, StartOptions } from './start-options.ts';
export type { StreamPart } from './stream.ts';

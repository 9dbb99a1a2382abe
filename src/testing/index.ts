/** What users need to test their agents. */

export type { DefinedAgent } from '../agent/index.ts';
export type { Session, Sessions, StartOptions } from '../client/index.ts';
export type { CheckpointSaver } from '../contract/checkpoint.ts';
export type { Phase } from '../contract/state.ts';
export type { SessionView } from '../contract/views.ts';
export type { SessionWorkerOptions } from '../worker/index.ts';
export * from './conformance/index.ts';
export * from './harness/index.ts';
export * from './scripted-model/index.ts';
export * from './wire.ts';

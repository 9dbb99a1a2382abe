/** What users need to test their agents. */
export * from './conformance/index.ts';
export * from './harness/index.ts';
export * from './scripted-model/index.ts';

/** What users need to test their agents. */
export * from './scripted-model/index.ts';

export { type Change, diff } from './diff.ts';
export { MemorySaver } from './memory-saver.ts';
export { SqliteSaver } from './sqlite-saver.ts';
export { TemporalSaver } from './temporal-saver.ts';
export * from './views/index.ts';

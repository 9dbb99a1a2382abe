export { MemorySaver } from './memory-saver.ts';
export { SqliteSaver } from './sqlite-saver.ts';
export { TemporalSaver } from './temporal-saver.ts';

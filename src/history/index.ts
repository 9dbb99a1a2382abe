export { type Fold, type FoldedTask, foldHistory, type RunEnd } from './fold.ts';
export { PayloadReader } from './payloads.ts';
export { type HistoryEvent, readEvents } from './read-events.ts';

export { type Fold, type FoldedTask, foldHistory, type RunEnd } from './fold.ts';
export { type HistoryEvent, readEvents } from './read-events.ts';

export { isNotFound, loadParts, orNull, readStartInput } from './content.ts';
export type { RunEnd } from './event-inputs.ts';
export { type Fold, type FoldedTask, Folder, foldHistory } from './fold.ts';
export { leftState } from './left-state.ts';
export { firstValue } from './payloads.ts';
export { type HistoryEvent, readEvents, readPages, readStart, resetOf } from './read-events.ts';
export { sameCall, whatHappened } from './what-happened.ts';

export { loadParts, orNull, readInput } from './content.ts';
export type { RunEnd } from './event-inputs.ts';
export { type Fold, type FoldedTask, Folder, foldHistory } from './fold.ts';
export { foldSession } from './fold-session.ts';
export { firstValue } from './payloads.ts';
export { type HistoryEvent, readEvents, readPages, readStart } from './read-events.ts';
export { sameCall, whatHappened } from './what-happened.ts';

export { loadParts, orNull, readInput } from './content.ts';
export { bringsInput, isTaken, type RunEnd } from './event-inputs.ts';
export { type Fold, type FoldedTask, Folder, foldHistory } from './fold.ts';
export { foldSession } from './fold-session.ts';
export { firstJson, firstValue } from './payloads.ts';
export { begun, type HistoryEvent, readEvents, readPages } from './read-events.ts';
export { sameCall, whatHappened } from './what-happened.ts';

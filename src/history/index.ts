export { readBackground } from './background.ts';
export { readChild } from './child-end.ts';
export type { RunEnd } from './event-inputs.ts';
export { type Fold, type FoldedTask, Folder, foldHistory } from './fold.ts';
export { foldSession } from './fold-session.ts';
export { leftState } from './left-state.ts';
export { spentOfEnded } from './pool-spent.ts';
export { sameCall, stepsSince, whatHappened } from './what-happened.ts';

export { type Change, diff } from './diff.ts';
export { effectsSince, undoPlanSince } from './effects-left.ts';
export type { EffectSince } from './effects-since.ts';
export { wholeCheckpoint } from './whole-checkpoint.ts';

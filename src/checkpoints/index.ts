export { type Change, diff } from './diff.ts';
export { type EffectSince, effectsSince } from './effects-since.ts';

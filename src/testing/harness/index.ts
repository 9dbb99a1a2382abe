export { breakpoint } from './breakpoints.ts';
export {
  createHarness,
  type Harness,
  type HarnessOptions,
  type HarnessProcessOptions,
  type HarnessWorker,
} from './harness.ts';
export type { WorkerProcess } from './worker-process.ts';

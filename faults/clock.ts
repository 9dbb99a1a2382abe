/**
 * Steps the wall clock of a worker process. Only its `Date` changes, not the clock of the machine, which all processes
 * share.
 */
import { appendFileSync } from 'node:fs';

const TrueDate = Date;
const HOUR_MS = 3_600_000;

let shiftMs = 0;

class SteppedDate extends TrueDate {
  constructor(...given: [] | [number | string | Date]) {
    super(given[0] ?? TrueDate.now() + shiftMs);
  }

  static override now(): number {
    return TrueDate.now() + shiftMs;
  }
}

/** A step that was made. */
export interface ClockStep {
  /** Whose call was in the tool. */
  readonly tag: string;
  /** The process whose clock it was. */
  readonly pid: number;
  /** When it was, in milliseconds since the epoch. */
  readonly at: number;
  /** The time of the clock just before and just after the step. */
  readonly before: number;
  readonly after: number;
}

/**
 * Steps the clock of this process: an hour forward, the next time two hours back, and so on. It is written to a file.
 */
export function stepClock(tag: string, file: string): void {
  const before = Date.now();
  globalThis.Date = SteppedDate as DateConstructor;
  shiftMs = shiftMs > 0 ? -HOUR_MS : HOUR_MS;
  const step: ClockStep = { tag, pid: process.pid, at: TrueDate.now(), before, after: Date.now() };
  appendFileSync(file, `${JSON.stringify(step)}\n`);
}

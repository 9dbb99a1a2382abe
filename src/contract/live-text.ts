/** What the heartbeats of reads and model calls carry while they run. It never enters the history. */
import type { ReadEnd } from './activities.ts';
import { jsonSize } from './json.ts';
import { LIMIT } from './limits.ts';

/** A window on the text so far. */
export interface LiveText {
  /** The attempt that writes it: a reader drops what it has when this changes. */
  attempt: number;
  /** Characters before the window. */
  offset: number;
  text: string;
  /**
   * `reading`: the model has not been asked, and `asking` is recorded before it is. Absent when the attempt does not
   * promise that.
   */
  stage?: 'reading' | 'asking';
  /** Reads that have ended, as far as they are small. */
  reads?: readonly ReadEnd[];
  /** Ids of the reads that run now. */
  running?: string[];
}

/** The end of a text, as much as a heartbeat may carry. */
export function liveWindow(attempt: number, whole: string): LiveText {
  let keep = Math.min(whole.length, LIMIT.liveText);
  let window: LiveText;
  do {
    const offset = whole.length - keep;
    window = { attempt, offset, text: whole.slice(offset) };
    keep = Math.floor(keep * 0.8);
  } while (jsonSize(window) > LIMIT.liveText);
  return window;
}

/** The heartbeats of reads and model calls. They never enter the history. */
import type { ReadEnd } from './activities.ts';
import { jsonSize } from './json.ts';
import { LIMIT } from './limits.ts';

/** A window on the text so far. */
export interface LiveText {
  /** The attempt that writes it. When it changes, readers drop what they have. */
  attempt: number;
  /** Characters before the window. */
  offset: number;
  text: string;
  /** `reading`: the model was not asked; `asking` is recorded first. Absent when the attempt does not promise that. */
  stage?: 'reading' | 'asking';
  /** Finished reads, as far as they are small. */
  reads?: readonly ReadEnd[];
  /** Ids of the running reads. */
  running?: string[];
}

/** The end of a text that fits into a heartbeat. */
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

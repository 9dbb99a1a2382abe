/** Live text: what a model call's heartbeats carry while it runs. It never enters the history. */
import { jsonSize } from './json.ts';
import { LIMIT } from './limits.ts';

/** A window on the text so far. */
export interface LiveText {
  /** The attempt that writes it: a reader drops what it has when this changes. */
  attempt: number;
  /** Characters before the window. */
  offset: number;
  text: string;
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

/** What a model says while it answers. It never enters the history. */
import type { ReadEnd } from './activities.ts';
import { jsonSize } from './json.ts';
import { LIMIT } from './limits.ts';

/** A piece of an answer that is being written. */
export type LiveDelta =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  /** A piece of a tool call's JSON. `id` tells the calls of an answer apart; it is not the id of the recorded call. */
  | { type: 'tool_input'; id: string; name: string; text: string };

/** The heartbeat of reads and model calls: a window on the text so far. */
export interface LiveText {
  /** The attempt that writes it. When it changes, readers drop what they have. */
  attempt: number;
  /** Number of its request to a model, from 0. When it changes, readers drop what they have, too. */
  request?: number;
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
export function liveWindow(attempt: number, whole: string, request = 0): LiveText {
  let keep = Math.min(whole.length, LIMIT.liveText);
  let window: LiveText;
  do {
    const offset = whole.length - keep;
    window = { attempt, ...(request > 0 && { request }), offset, text: whole.slice(offset) };
    keep = Math.floor(keep * 0.8);
  } while (jsonSize(window) > LIMIT.liveText);
  return window;
}

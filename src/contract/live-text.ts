/** The text of a model's answer while the model writes it. It never enters the history. */

import { jsonSize } from './json.ts';
import { LIMIT } from './limits.ts';
import type { ReadEnd } from './model-call.ts';

/** A piece of an answer that is being written. Readers share it, so it never changes. */
export type LiveDelta = Readonly<
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  /** A piece of a tool call's JSON. `id` tells the calls of an answer apart; it is not the id of the recorded call. */
  | { type: 'tool_input'; id: string; name: string; text: string }
>;

/** Which model call: the activity of a run. */
export interface LiveKey {
  runId: string;
  activityId: string;
}

/** Receives a model's answer while the model writes it. */
export interface LiveListener {
  /**
   * A request to the model begins. Its name is `<attempt>.<number>`. Another name than the last voids all earlier
   * deltas.
   */
  begin(request: string): void;
  say(delta: LiveDelta): void;
}

/** The end of a channel that a model call writes to. Its methods neither throw nor wait. */
export interface LiveWriter extends LiveListener {
  /** The call is over. */
  end(): void;
}

/** Converts and encodes the values of a channel, as the user's data converter does for the call's payloads. */
export interface LiveCoding {
  encode(value: unknown): Promise<Uint8Array>;
  decode(bytes: Uint8Array): Promise<unknown>;
}

/**
 * Carries the text of models from workers to streams in other processes, such as `RedisLiveChannel`. It may lose text:
 * the history has the whole answer.
 */
export interface LiveChannel {
  /** Writes the answer of a model call. */
  write(key: LiveKey, coding: LiveCoding): LiveWriter;
  /** Sends a listener what a model call has written so far, then the rest. @returns a function that stops it */
  read(key: LiveKey, coding: LiveCoding, listener: LiveListener): () => void;
  /** Closes its connections. */
  close(): void;
}

/** The heartbeat of reads and model calls: a window on the text so far. */
export interface LiveText {
  /** The attempt that writes it. When it changes, readers drop what they have. */
  attempt: number;
  /** The number of its request to a model, from 0. When it changes, readers also drop what they have. */
  request?: number;
  /** Characters before the window. */
  offset: number;
  text: string;
  /**
   * `reading`: the model was not asked yet; the attempt records `asking` before it asks. Absent when the attempt does
   * not promise that.
   */
  stage?: 'reading' | 'asking';
  /** Finished reads whose results are small. */
  reads?: readonly ReadEnd[];
  /** Ids of the running reads. */
  running?: string[];
}

/** The last part of a text that fits into a heartbeat. */
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

/** Appends a delta. Consecutive deltas of one text become one delta. */
export function addDelta(said: LiveDelta[], delta: LiveDelta): void {
  const last = said.at(-1);
  const isSame =
    last?.type === delta.type &&
    (last.type !== 'tool_input' || delta.type !== 'tool_input' || last.id === delta.id);
  if (last !== undefined && isSame) said[said.length - 1] = { ...last, text: last.text + delta.text };
  else said.push(delta);
}

/** Whether a request, named `<attempt>.<number>`, began before another. `''` is before all requests. */
export function isOlder(request: string, than: string): boolean {
  const [attempt = 0, number = 0] = request.split('.').map(Number);
  const [thanAttempt = 0, thanNumber = 0] = than.split('.').map(Number);
  return attempt < thanAttempt || (attempt === thanAttempt && number < thanNumber);
}

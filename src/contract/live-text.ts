/** What a model says while it answers. It never enters the history. */

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

/** Hears an answer. */
export interface LiveListener {
  /** A request begins, named `<attempt>.<number>`. When its name differs from the last, what was said before is void. */
  begin(request: string): void;
  say(delta: LiveDelta): void;
}

/** The end of a channel that a model call writes to. Nothing of it throws or waits. */
export interface LiveWriter extends LiveListener {
  /** The call is over. */
  end(): void;
}

/** Converts and encodes what goes through a channel, as the user's data converter does it for the call's payloads. */
export interface LiveCoding {
  encode(value: unknown): Promise<Uint8Array>;
  decode(bytes: Uint8Array): Promise<unknown>;
}

/**
 * Carries what models say from workers to streams in other processes, such as `RedisLiveChannel`. It may lose what it
 * carries: the history has the answer.
 */
export interface LiveChannel {
  /** Writes the answer of a model call. */
  write(key: LiveKey, coding: LiveCoding): LiveWriter;
  /** Tells a listener what a model call has said so far, and then the rest. @returns what ends it */
  read(key: LiveKey, coding: LiveCoding, listener: LiveListener): () => void;
  /** Closes its connections. */
  close(): void;
}

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

/** Adds a piece to what was said: pieces of one text become one. */
export function addDelta(said: LiveDelta[], delta: LiveDelta): void {
  const last = said.at(-1);
  const isSame =
    last?.type === delta.type &&
    (last.type !== 'tool_input' || delta.type !== 'tool_input' || last.id === delta.id);
  if (last !== undefined && isSame) said[said.length - 1] = { ...last, text: last.text + delta.text };
  else said.push(delta);
}

/** Whether a request, named `<attempt>.<number>`, began before another. `''` is before all. */
export function isOlder(request: string, than: string): boolean {
  const [attempt = 0, number = 0] = request.split('.').map(Number);
  const [thanAttempt = 0, thanNumber = 0] = than.split('.').map(Number);
  return attempt < thanAttempt || (attempt === thanAttempt && number < thanNumber);
}

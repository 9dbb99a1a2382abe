/** The scratchpad: small files of the model that are part of the state. */
import { SCRATCHPAD } from '../contract/built-in.ts';
import { type JsonValue, utf8Length } from '../contract/json.ts';
import type { SessionState } from '../contract/state.ts';

/** The arguments of the tools, which their schemas have checked. */
export interface ScratchpadArgs {
  path?: string;
  text?: string;
  append?: boolean;
}

/** A relative path below the root, without `.` or `..` in it. */
const PATH = /^(?!\.{1,2}(?:\/|$))[\w.-]+(?:\/(?!\.{1,2}(?:\/|$))[\w.-]+)*$/;

/** The files, without their text. */
export function scratchpadFiles({ scratchpad = {} }: SessionState): { path: string; bytes: number }[] {
  return Object.entries(scratchpad).map(([path, text]) => ({ path, bytes: utf8Length(text) }));
}

/** Answers a call of a scratchpad tool. */
export function readScratchpad(
  state: SessionState,
  verb: 'read' | 'write' | 'list',
  { path = '', text, append }: ScratchpadArgs,
): { content: JsonValue; isError: boolean } {
  const files = state.scratchpad ?? {};
  const told = (content: JsonValue) => ({ content, isError: false });
  const refuse = (content: string) => ({ content, isError: true });
  if (verb === 'list') return told(scratchpadFiles(state));
  if (!PATH.test(path) || path.length > SCRATCHPAD.path || path === '__proto__')
    return refuse(
      `path is ${JSON.stringify(path)}: write letters, digits, '.', '_', '-' and '/', at most ${SCRATCHPAD.path} characters, such as notes/plan.md.`,
    );
  const before = Object.hasOwn(files, path) ? files[path] : undefined;
  if (verb === 'read') {
    return before === undefined
      ? refuse(`There is no file ${path}. Files: ${Object.keys(files).join(', ') || 'none'}.`)
      : told(before);
  }
  if (text === undefined) {
    const { [path]: _, ...others } = files;
    state.scratchpad = others;
    return told(before === undefined ? `There was no file ${path}.` : `${path} is removed.`);
  }
  const next = { ...files, [path]: append === true ? (before ?? '') + text : text };
  const bytes = utf8Length(next[path] ?? '');
  const all = Object.values(next).reduce((sum, one) => sum + utf8Length(one), 0);
  if (bytes > SCRATCHPAD.fileBytes)
    return refuse(`${path} would have ${bytes} bytes, the limit is ${SCRATCHPAD.fileBytes}. Shorten it.`);
  if (Object.keys(next).length > SCRATCHPAD.files)
    return refuse(`There are ${SCRATCHPAD.files} files already, and there is room for no more. Remove one.`);
  if (all > SCRATCHPAD.bytes)
    return refuse(
      `All files would have ${all} bytes, the limit is ${SCRATCHPAD.bytes}. Remove or shorten some.`,
    );
  state.scratchpad = next;
  return told(`${path} has ${bytes} bytes.`);
}

/** The difference between two definitions of an agent, as a session records it. */
import { canonicalJson, type JsonValue } from '../contract/json.ts';
import type { AgentChange, Manifest } from '../contract/manifest.ts';
import type { SessionState } from '../contract/state.ts';
import type { Moment } from './events.ts';
import { iso, note } from './state.ts';

/** How many changes are kept, the last ones, and how many names of each, the first ones. */
const KEPT_CHANGES = 10;
const KEPT_NAMES = 40;

/** Records that the session's definition replaced another one. */
export function recordChange(state: SessionState, from: Manifest, moment: Moment): void {
  const { manifest: to, turn } = state;
  if (to === null) return;
  const change = { at: iso(moment), turn, from: from.digest, to: to.digest, ...difference(from, to) };
  state.agentChanges = [...(state.agentChanges ?? []), change].slice(-KEPT_CHANGES);
  const words = `the definition of ${to.agent} changed: ${changeInWords(change)}; digest ${from.digest} to ${to.digest}`;
  note(state, moment, 'manifest', words);
}

/** A change in words: a list of what differs. */
export function changeInWords({ changed, addedTools, removedTools, more = 0 }: AgentChange): string {
  const parts = [
    ...changed,
    ...addedTools.map((name) => `tool ${name} added`),
    ...removedTools.map((name) => `tool ${name} removed`),
    ...(more > 0 ? [`${more} more`] : []),
  ];
  return parts.join(', ') || 'nothing that a session sees';
}

type Difference = Pick<AgentChange, 'changed' | 'addedTools' | 'removedTools' | 'more'>;

function difference(from: Manifest, to: Manifest): Difference {
  const {
    schema: _,
    agent: _agent,
    digest: _digest,
    tools: toolsBefore,
    budget: capsBefore,
    ...before
  } = from;
  const { schema: __, agent: __agent, digest: __digest, tools: toolsNow, budget: capsNow, ...now } = to;
  const addedTools = Object.keys(toolsNow).filter((name) => !Object.hasOwn(toolsBefore, name));
  const removedTools = Object.keys(toolsBefore).filter((name) => !Object.hasOwn(toolsNow, name));
  const changed = [
    ...differing(before, now),
    ...differing(capsBefore, capsNow).map((cap) => `budget.${cap}`),
    ...Object.entries(toolsNow).flatMap(([name, tool]) => {
      const former = Object.hasOwn(toolsBefore, name) ? toolsBefore[name] : undefined;
      return former === undefined ? [] : differing(former, tool).map((field) => `tools.${name}.${field}`);
    }),
  ];
  let left = KEPT_NAMES;
  const kept = (names: string[]): string[] => {
    const first = names.slice(0, left);
    left -= first.length;
    return first;
  };
  const all = changed.length + addedTools.length + removedTools.length;
  const found = { changed: kept(changed), addedTools: kept(addedTools), removedTools: kept(removedTools) };
  return all > KEPT_NAMES ? { ...found, more: all - KEPT_NAMES } : found;
}

/** The names of the fields in which two JSON objects differ, sorted. */
function differing(before: object, now: object): string[] {
  const [a, b] = [before, now] as [Record<string, JsonValue>, Record<string, JsonValue>];
  const text = (value: JsonValue | undefined): string | null =>
    value === undefined ? null : canonicalJson(value);
  return [...new Set([...Object.keys(a), ...Object.keys(b)])]
    .filter((name) => text(a[name]) !== text(b[name]))
    .sort();
}

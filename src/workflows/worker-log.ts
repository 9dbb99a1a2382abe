/** Logs lost calls, unknown effects and waits of a session to its worker's log. A replay logs nothing. */
import { log } from '@temporalio/workflow';
import type { SessionState } from '../contract/state.ts';
import { batchCalls } from '../session/state.ts';

/** Makes a function that logs what is new in a state. It must see each state of the session. */
export function newsLogger(): (state: SessionState) => void {
  let told = new Set<string>();
  return (state) => {
    const news = new Map<string, string>();
    const { wait } = state;
    if (wait !== null) news.set(`wait ${wait.since}`, `waits: ${wait.reason}: ${wait.message}`);
    for (const { id, name, status, dispatches } of batchCalls(state)) {
      for (const { no, outcome, reason } of dispatches) {
        if (outcome === 'unknown')
          news.set(`lost ${id} ${no}`, `lost dispatch ${no} of ${name} ${id}: ${reason ?? 'no reply'}`);
      }
      if (status.kind === 'settling')
        news.set(
          `lost ${id} ${dispatches.length}`,
          `lost dispatch ${dispatches.length} of ${name} ${id}: ${status.reason}`,
        );
      if (status.kind === 'unknown')
        news.set(
          `unknown ${id} ${dispatches.length}`,
          `the outcome of ${name} ${id} is unknown: ${status.reason}`,
        );
    }
    for (const [key, text] of news) {
      if (!told.has(key)) log.warn(`session ${state.sessionId} ${text}`);
    }
    told = new Set(news.keys());
  };
}

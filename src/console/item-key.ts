import type { InboxItem } from '../contract/inbox.ts';

/**
 * The same item in the next reading. A call that was asked for or dispatched again, or approved by one of several, is another
 * one. The next step names the dispatch in question: that of a global effect is not the call's own.
 */
export function keyOf({ sessionId, kind, since, call }: InboxItem): string {
  return JSON.stringify([sessionId, kind, since, call?.callId, call?.needs?.given.length, call?.next]);
}

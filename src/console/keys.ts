import type { InboxItem } from '../contract/inbox.ts';

/**
 * A key that finds the same item in the next reading. A call gets another key when it is dispatched again, or when one
 * of several people approves it.
 */
export function keyOf({ sessionId, kind, call, wait }: InboxItem): string {
  return JSON.stringify([
    sessionId,
    kind,
    call?.callId,
    call?.argsDigest,
    call?.dispatchNo,
    call?.needs?.given.length,
    wait?.since,
  ]);
}

/** Whether a key is meant for a field or a browser, and not for the page. */
export function isTyping({ target, metaKey, ctrlKey, altKey }: KeyboardEvent): boolean {
  if (metaKey || ctrlKey || altKey) return true;
  return target instanceof Element && target.closest('input, textarea, select') !== null;
}

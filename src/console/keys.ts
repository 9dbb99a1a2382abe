/** Whether a key is meant for a field or a browser, and not for the page. */
export function isTyping({ target, metaKey, ctrlKey, altKey }: KeyboardEvent): boolean {
  if (metaKey || ctrlKey || altKey) return true;
  return target instanceof Element && target.closest('input, textarea, select') !== null;
}

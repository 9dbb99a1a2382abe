/** What Temporal's visibility can be asked for. */
import { PerdureError } from '../contract/errors.ts';

/**
 * Why the server's visibility does not find a text, or `null` when it does. It compares these as it has read them,
 * with their escapes, in whatever way they are written: a query answers nothing, or is refused.
 */
export function unsearchable(text: string): string | null {
  if (/["\\\p{Cc}]/u.test(text)) return 'contains a double quote, a backslash or a control character';
  return /^'|'$/.test(text) ? 'begins or ends with an apostrophe' : null;
}

/** A text in a query. @throws PerdureError `INVALID_ARGUMENT` when the server would not find it */
export function quoted(field: string, text: string): string {
  const problem = unsearchable(text);
  if (problem === null) return `'${text.replaceAll("'", "''")}'`;
  const message = `${field} ${problem}, which Temporal's visibility does not find`;
  throw new PerdureError('INVALID_ARGUMENT', message, { details: { field } });
}

import { invalid } from '../contract/errors.ts';

/** Whether this is the URL of a PostgreSQL database. */
export function isPostgresUrl(text: string): boolean {
  return /^postgres(ql)?:\/\//i.test(text);
}

/**
 * The location of a database, without secrets.
 *
 * @throws PerdureError `INVALID_ARGUMENT`
 */
export function placeOf(url: string): string {
  const parsed = isPostgresUrl(url) && URL.canParse(url) ? new URL(url) : null;
  // An @ in the path belongs to a password that was not escaped, and would be shown.
  if (parsed === null || parsed.pathname.includes('@')) {
    throw invalid('url', 'write postgres://user:password@host:5432/database');
  }
  return `postgres://${parsed.host}${parsed.pathname}`;
}

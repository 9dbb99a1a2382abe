/** Checks values against the schemas of definitions, which may hang. */

import { asSchema } from '@ai-sdk/provider-utils';
import type { FlexibleSchema } from 'ai';
import { messageOf } from '../contract/errors.ts';
import { defined, type JsonValue } from '../contract/json.ts';

/** How long the checks of a reply's calls may take together, in milliseconds. */
const CHECKS_MS = 10_000;

/** When to stop waiting for checks: a tool's code may hang, and a paid reply waits for it. */
export interface Deadline {
  /** As `performance.now()`, in milliseconds. */
  until: number;
  /** Ends the wait at once. */
  signal?: AbortSignal;
}

/** A checked value: the parsed value, or what is wrong with it. */
export type Checked = { ok: true; value: unknown } | { ok: false; problem: string; issues: Issue[] };

/** What is wrong with a field. `field` is empty when it is the value itself. */
interface Issue {
  field: string;
  problem: string;
}

/** The deadline of checks that begin now. */
export function deadline(signal?: AbortSignal): Deadline {
  return { until: performance.now() + CHECKS_MS, ...defined({ signal }) };
}

/**
 * The result of a check.
 *
 * @throws Error when the deadline comes first. A check that answers at once still counts.
 */
export async function withDeadline<T>(check: T | PromiseLike<T>, { until, signal }: Deadline): Promise<T> {
  let stop = (): void => {};
  const ended = new Promise<never>((_, reject) => {
    stop = () => setImmediate(() => reject(new Error('the check did not answer in time')));
  });
  const timer = setTimeout(stop, Math.max(0, until - performance.now()));
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted === true) stop();
  try {
    return await Promise.race([check, ended]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

/**
 * Checks a value against a schema.
 *
 * @param at - the name of the value in the problem, before the path of the field. Default: the path alone.
 */
export async function validate(
  schema: FlexibleSchema<unknown>,
  value: JsonValue,
  waits: Deadline,
  at?: string,
): Promise<Checked> {
  try {
    const { validate: check } = asSchema(schema);
    if (check === undefined) return { ok: true, value };
    const checked = await withDeadline(check(value), waits);
    return checked.success ? { ok: true, value: checked.value } : failed(checked.error, at);
  } catch (error) {
    return failed(error, at);
  }
}

function failed(error: unknown, at?: string): Checked {
  return { ok: false, problem: describe(error, at), issues: issuesOf(error, at) };
}

/** The error of a failed check in words, with the fields. */
export function describe(error: unknown, at?: string): string {
  return inWords(issuesOf(error, at));
}

/** Issues in words, with their fields. */
export function inWords(issues: readonly Issue[]): string {
  return issues.map(({ field, problem }) => (field === '' ? problem : `${field}: ${problem}`)).join('; ');
}

function issuesOf(error: unknown, at?: string): Issue[] {
  const issues = (error as { issues?: { path?: readonly unknown[]; message?: string }[] }).issues;
  if (Array.isArray(issues) && issues.length > 0) {
    return issues.map(({ path = [], message }) => {
      // A path of a standard schema may have its keys in objects.
      const keys = path.map((key) => String((key as { key?: unknown } | null)?.key ?? key));
      const field = [...(at === undefined ? [] : [at]), ...keys].join('.') || 'input';
      return { field, problem: String(message) };
    });
  }
  return [{ field: at ?? '', problem: messageOf(error) }];
}

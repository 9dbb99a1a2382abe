/** Who calls the API: the roles, and the tokens that name a caller. */
import { createHash } from 'node:crypto';
import { invalid, PerdureError } from '../contract/errors.ts';

/**
 * - `read`: see sessions, threads and values.
 * - `talk`: start sessions and send messages.
 * - `decide`: decide approvals and resolve unknown calls.
 * - `operate`: pause, resume, cancel, edit, set budgets, fork, rewind, and write or delete threads.
 */
export type Role = 'read' | 'talk' | 'decide' | 'operate';

/** All roles. No role contains another. */
export const ROLES: readonly Role[] = ['read', 'talk', 'decide', 'operate'];

/** The verified caller of a request. */
export interface Principal {
  /** Recorded as `by`. `null`: a caller with the shared token, who gives a name that nobody verifies. */
  readonly name: string | null;
  readonly roles: readonly Role[];
  /** Only sessions of this tenant exist for the caller. `null`: all sessions. */
  readonly tenant: string | null;
}

/** A token and its caller. */
export interface TokenOptions {
  /** At least 16 letters, digits and `-._~+/`, with `=` at the end. */
  token: string;
  /** Recorded as `by` of what the caller does. 1 to 200 characters. */
  name: string;
  roles: readonly Role[];
  /** Restricts the caller to sessions of this tenant. Default: all sessions. */
  tenant?: string | undefined;
}

/** The fewest characters of a token, so that nobody can guess it. */
const TOKEN_LENGTH = 16;
const NAME_LENGTH = 200;

/** Finds the principal of a static token. The lookup compares digests, so its duration tells nothing about a token. */
export type KnownTokens = (token: string) => Principal | undefined;

/**
 * @param shared - a token without a name, with all roles.
 * @throws PerdureError `INVALID_ARGUMENT` naming the field
 */
export function knownTokens(shared: string | undefined, tokens: readonly TokenOptions[]): KnownTokens {
  const byDigest = new Map<string, Principal>();
  if (shared !== undefined) {
    checkToken('token', shared);
    byDigest.set(digestOf(shared), { name: null, roles: ROLES, tenant: null });
  }
  for (const [i, entry] of tokens.entries()) {
    const { token, ...principal } = checkEntry(`tokens.${i}`, entry);
    if (byDigest.has(digestOf(token))) throw invalid(`tokens.${i}.token`, 'another entry has the same token');
    byDigest.set(digestOf(token), principal);
  }
  return (token) => byDigest.get(digestOf(token));
}

/** @throws PerdureError `INVALID_ARGUMENT` for a name or a tenant that the record cannot hold */
export function checkName(field: string, value: unknown): string {
  if (typeof value === 'string' && value.trim() !== '' && value.length <= NAME_LENGTH) return value;
  throw invalid(field, `expected a text of 1 to ${NAME_LENGTH} characters`);
}

/** The roles among these names. Others are an identity provider's own. */
export function rolesAmong(names: readonly unknown[]): Role[] {
  return ROLES.filter((role) => names.includes(role));
}

function checkEntry(field: string, entry: unknown): Principal & { token: string } {
  if (typeof entry !== 'object' || entry === null)
    throw invalid(field, 'expected {token, name, roles, tenant?}');
  const { token, name, roles, tenant, ...others } = entry as Record<string, unknown>;
  const [other] = Object.keys(others);
  if (other !== undefined) {
    throw invalid(`${field}.${other}`, 'is not known. Known: token, name, roles, tenant');
  }
  if (typeof token !== 'string') throw invalid(`${field}.token`, 'expected a text');
  checkToken(`${field}.token`, token);
  if (!Array.isArray(roles)) throw invalid(`${field}.roles`, `expected a list of ${ROLES.join(', ')}`);
  const unknown: unknown = roles.find((role) => !ROLES.includes(role as Role));
  if (unknown !== undefined) {
    throw invalid(`${field}.roles`, `${JSON.stringify(unknown)} is no role. Roles: ${ROLES.join(', ')}`);
  }
  return {
    token,
    name: checkName(`${field}.name`, name),
    roles: rolesAmong(roles),
    tenant: tenant === undefined ? null : checkName(`${field}.tenant`, tenant),
  };
}

function checkToken(field: string, token: string): void {
  if (!/^[\w.~+/-]*=*$/.test(token)) {
    throw invalid(field, 'write letters, digits and -._~+/ only, with = at the end');
  }
  if (token.length >= TOKEN_LENGTH) return;
  const problem = `it has ${token.length} characters, but needs at least ${TOKEN_LENGTH}`;
  throw invalid(field, `${problem}. Make one with openssl rand -hex 32, or let perdure serve make one`);
}

/** The error for an unknown caller. `details.reason` is for programs. */
export function unauthorized(reason: string, message: string): PerdureError {
  return new PerdureError('UNAUTHORIZED', message, { details: { reason } });
}

function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** What a caller may do: roles, tenants, the `authorize` hook, and the name that is recorded. */
import { tenantOf } from '../contract/context.ts';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import type { JsonObject } from '../contract/json.ts';
import type { SessionInput } from '../contract/session-input.ts';
import { readStartInput } from '../temporal/index.ts';
import { shownTenant } from '../temporal/visibility.ts';
import type { Backend, Operation } from './operation.ts';
import type { Principal, Role } from './principal.ts';

/** What a caller is about to do. */
export interface Action {
  /** The `operationId` of the OpenAPI document, such as `decideCall`. */
  operation: string;
  role: Role;
}

/**
 * Your own rule, asked after the checks of roles and tenants. `session` is the id in the path, of a session or a
 * thread, and `null` for lists and new sessions. `false` refuses the request with `FORBIDDEN`. A thrown error answers
 * `INTERNAL`, unless it is a PerdureError, which answers its own code.
 */
export type Authorize = (
  principal: Principal,
  action: Action,
  session: string | null,
) => boolean | Promise<boolean>;

/**
 * Refuses what a caller may not do.
 *
 * @throws PerdureError `FORBIDDEN`; `SESSION_NOT_FOUND` for a session of another tenant
 */
export async function checkAccess(
  { id, role, path, tenants }: Operation,
  params: ReadonlyMap<string, string>,
  principal: Principal,
  backend: Backend & { authorize?: Authorize | undefined },
): Promise<void> {
  if (role === null || role === 'any') return;
  needRole(id, role, principal);
  const session = params.get('id') ?? params.get('thread_id') ?? null;
  const { tenant } = principal;
  if (tenant !== null && session === null && tenants !== true) {
    throw forbidden(`${id} covers all tenants, and ${nameOf(principal)} has only ${tenant}`, { tenant });
  }
  if (tenant !== null && session !== null && (await tenantOfSession(backend, session)) !== tenant) {
    // The same answer whether or not it exists: a caller learns nothing about other tenants.
    const what = path.startsWith('/threads') ? 'Threads have no tenant, and there' : 'There';
    throw new PerdureError('SESSION_NOT_FOUND', `${what} is no session ${session} of tenant ${tenant}`);
  }
  const { authorize } = backend;
  if (authorize === undefined || (await authorize(principal, { operation: id, role }, session))) return;
  const what = session === null ? id : `${id} of ${session}`;
  throw forbidden(`${nameOf(principal)} may not ${what}: the authorize hook of this server refuses it`, {
    operation: id,
  });
}

/** Refuses a caller without a role. @throws PerdureError `FORBIDDEN` */
export function needRole(what: string, role: Role, principal: Principal): void {
  const { roles } = principal;
  if (roles.includes(role)) return;
  const has = roles.length === 0 ? 'no role' : `only ${roles.join(', ')}`;
  const message = `${what} needs the role ${role}, and ${nameOf(principal)} has ${has}. Ask an administrator for the role`;
  throw forbidden(message, { role, roles });
}

/** The tenant of a session, or `null` for none and for a session that does not exist. */
async function tenantOfSession(backend: Backend, id: string): Promise<string | null> {
  const { client, sessions } = backend;
  const shown = await shownTenant(client, id);
  if (shown !== null) return shown;
  // No worker has taken it up yet, or the server does not know our search attributes.
  const input = ((await readStartInput(client, id)) ?? {}) as Partial<SessionInput>;
  const context = input.carried?.context ?? input.context;
  if (context !== undefined && context !== null) return tenantOf(context);
  // Equal calls of two tenants are two effects, so an effect belongs to the tenant of any session that asks for it.
  const requester = (input.carried?.effect ?? input.effect)?.requestedBy;
  if (requester !== undefined) {
    return tenantOfSession(backend, requester.slice(0, requester.lastIndexOf('/')));
  }
  if (input.origin === undefined) return null;
  try {
    return tenantOf((await sessions.get(id).state()).context);
  } catch (error) {
    if (isPerdureError(error, 'SESSION_NOT_FOUND')) return null;
    throw error;
  }
}

/** The fields of a body that can name the caller or the tenant. */
interface Signed {
  by?: unknown;
  message?: { by?: unknown };
  edits?: { by?: unknown };
  context?: JsonObject;
  pool?: unknown;
}

/**
 * The body with the caller's name as `by`, and the caller's tenant in the context of a new session.
 *
 * @throws PerdureError `FORBIDDEN` for another name, or another tenant
 */
export function signed(of: Operation, body: unknown, principal: Principal): unknown {
  if (of.signs === undefined) return body;
  const { message, edits, context, ...rest } = body as Signed;
  const { tenant } = principal;
  // A caller with a tenant may only spend from that tenant's pool.
  if (tenant !== null && (rest.pool ?? tenant) !== tenant) throw ofOtherTenant('pool', tenant);
  return {
    ...(of.signs === 'by' ? named(rest, 'by', principal) : rest),
    ...(message === undefined
      ? {}
      : { message: { ...named(message, 'message.by', principal), ...verifiedBy(principal) } }),
    ...(edits === undefined ? {} : { edits: named(edits, 'edits.by', principal) }),
    ...(context === undefined && (tenant === null || of.signs === 'by')
      ? {}
      : { context: tenant === null ? context : inTenant(context ?? {}, tenant) }),
  };
}

/** Marks the caller's name as verified in a record. A caller with the shared token gets no mark. */
export function verifiedBy({ name }: Principal): { verified?: true } {
  return name === null ? {} : { verified: true };
}

/** An object with the caller's name as `by`. A caller with the shared token has no name: the given `by` stays. */
export function named<T extends { by?: unknown }>(value: T, field: string, { name }: Principal): T {
  if (name === null) return value;
  if (value.by === undefined || value.by === name) return { ...value, by: name };
  const message = `${field}: is ${JSON.stringify(value.by)}, but the token belongs to ${name}. Leave ${field} out`;
  throw forbidden(message, { field });
}

function inTenant(context: JsonObject, tenant: string): JsonObject {
  if (context['tenant'] === undefined || context['tenant'] === tenant) return { ...context, tenant };
  throw ofOtherTenant('context.tenant', tenant);
}

/** The error of a request for another tenant than the caller's. */
export function ofOtherTenant(field: string, tenant: string): PerdureError {
  return forbidden(`${field}: the token belongs to tenant ${tenant}. Leave ${field} out`, { field });
}

function forbidden(message: string, details: Record<string, unknown>): PerdureError {
  return new PerdureError('FORBIDDEN', message, { details });
}

function nameOf({ name }: Principal): string {
  return name ?? 'the token';
}

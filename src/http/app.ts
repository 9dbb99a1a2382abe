/** The HTTP API as a function from requests to responses. */
import { Hono, type MiddlewareHandler } from 'hono';
import { bearerAuth } from 'hono/bearer-auth';
import { methodNotAllowed as refuseMethod } from 'hono/method-not-allowed';
import * as z from 'zod/mini';
import { type ErrorCode, invalid, PerdureError } from '../contract/errors.ts';
import type { JsonObject } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import { type Authorize, checkAccess, signed } from './access.ts';
import { serveConsole } from './console.ts';
import { errorBody, errorResponse, reportUnexpected } from './errors.ts';
import { inspectionOperations } from './inspection.ts';
import { isJwt, type JwtOptions, jwtVerifier } from './jwt.ts';
import { describeApi } from './openapi.ts';
import { type Backend, type Operation, operation } from './operation.ts';
import { poolOperations } from './pools.ts';
import { knownTokens, type Principal, ROLES, type TokenOptions, unauthorized } from './principal.ts';
import { apiRequest, readBody, readParams, readQuery } from './request.ts';
import { sessionOperations } from './sessions.ts';
import { jsonObject } from './shapes.ts';
import { threadOperations } from './threads.ts';
import { treeOperation } from './tree.ts';

/** The most bytes of a body. Its contents are measured where they are used; escaped text can be three times as long. */
const BODY_LIMIT = 3 * LIMIT.input + 100_000;
/** How long the Temporal server may take to answer a health check, in milliseconds. */
const HEALTH_MS = 2_000;
/** What the header `WWW-Authenticate` says beside an error. */
const CHALLENGE: { [code in ErrorCode]?: string } = {
  UNAUTHORIZED: 'Bearer error="invalid_token"',
  FORBIDDEN: 'Bearer error="insufficient_scope"',
};
/** The caller of an operation that needs no token. */
const NOBODY: Principal = { name: null, roles: [], tenant: null };

export interface HttpApiOptions extends Backend {
  /**
   * A token that callers share: at least 16 letters, digits and `-._~+/`, with `=` at the end. It has all roles and no
   * name: callers choose their own `by`, which is not verified.
   */
  token?: string | undefined;
  /** Tokens of callers with a name, roles and maybe a tenant. */
  tokens?: readonly TokenOptions[] | undefined;
  /** Accepts JWTs of an OpenID Connect provider. */
  jwt?: JwtOptions | undefined;
  /** Your own rule for each request, asked after the checks of roles and tenants. */
  authorize?: Authorize | undefined;
  /** Host names that callers may use, in lower case, against DNS rebinding by web pages. Default: any. */
  hosts?: readonly string[];
  /**
   * Bytes of JSON text that a body may have. Default: 3.1 MB. Savers themselves take states of 20 MB, and a store of
   * values files of 50 MB, whose base64 is a third longer.
   */
  bodyLimit?: number;
  /** Whether to serve the console, a page for people, at `/console`. Default: false. */
  console?: boolean;
  /** Called with the error behind an `INTERNAL` answer, or behind the `INTERNAL` that ends a stream. */
  onError?: (error: unknown) => void;
}

export interface HttpApi {
  /** Answers a request. Errors are answers, too. */
  fetch(request: Request): Promise<Response>;
  /** The OpenAPI 3.1 document. */
  readonly document: JsonObject;
  readonly routes: readonly string[];
  /** Closes open streams without their `end`: readers connect again. */
  close(): void;
}

/**
 * Makes the HTTP API of a checkpoint saver and of sessions.
 *
 * @throws PerdureError `INVALID_ARGUMENT` when `token`, `tokens` and `jwt` are all missing, or one of them is not valid
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { Sessions, TemporalSaver } from 'perdure';
 * import { createHttpApi } from 'perdure/http';
 *
 * const client = new Client();
 * const saver = new TemporalSaver(client);
 * const token = process.env['PERDURE_TOKEN'] ?? '';
 * const api = createHttpApi({ client, saver, sessions: new Sessions(client), token });
 * export const GET = (request: Request): Promise<Response> => api.fetch(request);
 * ```
 */
export function createHttpApi(options: HttpApiOptions): HttpApi {
  const { hosts, bodyLimit = BODY_LIMIT, onError } = options;
  const authenticate = authenticator(options);
  const closing = new AbortController();
  const operations: readonly Operation[] = [
    ...threadOperations,
    ...sessionOperations,
    ...inspectionOperations,
    ...poolOperations,
    treeOperation,
    ...serviceOperations(() => document),
  ];
  const document = describeApi(operations);

  const failed = (error: unknown, request?: Request): Response => {
    reportUnexpected(error, onError, request?.signal);
    const { code, details } = errorBody(error).error;
    const challenge = details['reason'] === 'unknown_token' ? 'Bearer' : CHALLENGE[code];
    return errorResponse(error, challenge === undefined ? {} : { 'www-authenticate': challenge });
  };
  const answer = async (of: Operation, request: Request, principal: Principal): Promise<Response> => {
    try {
      const { pathname, searchParams } = new URL(request.url);
      const params = readParams(of.path, pathname);
      await checkAccess(of, params, principal, options);
      const query = readQuery(of.query ?? {}, searchParams);
      const body = signed(of, await readBody(request, of, bodyLimit), principal);
      const asked = apiRequest(request, params, query, body, principal, { closing: closing.signal, onError });
      const result = await of.handle(asked, options);
      if (result instanceof Response) {
        if (request.method !== 'HEAD') return result;
        // The router would drop the body, and a stream would wait for a reader for ever.
        await result.body?.cancel();
        return new Response(null, result);
      }
      const { status } = of.answer;
      return status === 204 ? new Response(null, { status }) : Response.json(result, { status });
    } catch (error) {
      return failed(error, request);
    }
  };

  const app = new Hono();
  app.use(async (context, next) => {
    const host = context.req.header('host');
    if (hosts !== undefined && !hosts.includes(hostname(host))) {
      context.res = failed(hostNotAllowed(host));
      return;
    }
    await next();
    context.header('cache-control', 'no-store');
    context.header('x-content-type-options', 'nosniff');
  });
  app.use(
    refuseMethod({
      app,
      onMethodNotAllowed: ({ req: { method, path } }, methods) => methodNotAllowed(method, path, methods),
    }),
  );
  const callers = new WeakMap<Request, Principal>();
  const refuse = { message: noToken };
  const identify = bearerAuth({
    verifyToken: async (token, { req }) => {
      callers.set(req.raw, await authenticate(token));
      return true;
    },
    noAuthenticationHeader: refuse,
    invalidAuthenticationHeader: refuse,
  });
  for (const of of operations) {
    const checks: MiddlewareHandler[] = of.role === null ? [] : [identify];
    app.on(of.method, [routeOf(of.path)], ...checks, (context) =>
      answer(of, context.req.raw, callers.get(context.req.raw) ?? NOBODY),
    );
  }
  if (options.console === true) serveConsole(app);
  const routes = operations.map(({ method, path }) => `${method} ${routeOf(path)}`);
  app.notFound(({ req }) => failed(routeNotFound(req.method, req.path)));
  app.onError((error) => failed(error));
  return {
    fetch: async (request) => app.fetch(request),
    document,
    routes,
    close: () => closing.abort(),
  };
}

function serviceOperations(document: () => JsonObject): Operation[] {
  return [
    operation({
      id: 'getHealth',
      method: 'GET',
      path: '/healthz',
      tag: 'service',
      summary: 'Whether the API and its Temporal server answer',
      role: null,
      answer: { status: 200, description: 'They do', schema: z.object({ status: z.literal('ok') }) },
      codes: ['SERVER_UNAVAILABLE'],
      handle: async (_, { client }) => {
        try {
          await client.withDeadline(Date.now() + HEALTH_MS, () => client.workflowService.getSystemInfo({}));
        } catch (error) {
          const message = 'The Temporal server does not answer';
          throw new PerdureError('SERVER_UNAVAILABLE', message, { cause: error });
        }
        return { status: 'ok' };
      },
    }),
    operation({
      id: 'whoami',
      method: 'GET',
      path: '/whoami',
      tag: 'service',
      summary: 'Whose token this is, and what it may do',
      role: 'any',
      answer: {
        status: 200,
        description: 'The caller. name: null is a shared token; tenant: null is all tenants',
        schema: z.object({
          name: z.nullable(z.string()),
          roles: z.array(z.enum(ROLES)),
          tenant: z.nullable(z.string()),
        }),
      },
      codes: [],
      handle: async ({ principal: { name, roles, tenant } }) => ({ name, roles, tenant }),
    }),
    operation({
      id: 'getOpenapi',
      method: 'GET',
      path: '/openapi.json',
      tag: 'service',
      summary: 'This document',
      role: null,
      answer: { status: 200, description: 'OpenAPI 3.1', schema: jsonObject },
      codes: [],
      handle: async () => document(),
    }),
  ];
}

function routeOf(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1');
}

/** Finds the caller of a token. @throws PerdureError `UNAUTHORIZED`, with the reason in `details.reason` */
function authenticator({ token, tokens = [], jwt }: HttpApiOptions): (sent: string) => Promise<Principal> {
  if (token === undefined && tokens.length === 0 && jwt === undefined) {
    throw invalid('token', 'nobody could call the API. Give a token, tokens with names and roles, or jwt');
  }
  const known = knownTokens(token, tokens);
  const verify = jwt === undefined ? undefined : jwtVerifier(jwt);
  return async (sent) => known(sent) ?? (verify !== undefined && isJwt(sent) ? verify(sent) : noToken());
}

function noToken(): never {
  throw unauthorized('unknown_token', 'Send a token of this server: Authorization: Bearer <token>');
}

function hostname(host: string | undefined): string {
  return (host ?? '').toLowerCase().replace(/:\d*$/, '');
}

function hostNotAllowed(host: string | undefined): PerdureError {
  return new PerdureError(
    'HOST_NOT_ALLOWED',
    `Host is ${host ?? 'missing'}: use the name or address that this server listens on`,
  );
}

function routeNotFound(method: string, path: string): PerdureError {
  return new PerdureError(
    'ROUTE_NOT_FOUND',
    `There is no ${method} ${path.slice(0, 200)}. An id in a path is percent-encoded, a slash as %2F. All routes: GET /openapi.json`,
  );
}

function methodNotAllowed(method: string, path: string, allowed: readonly string[]): Response {
  const allow = allowed.join(', ');
  const message = `${path.slice(0, 200)} does not support ${method}, only ${allow}`;
  const error = new PerdureError('METHOD_NOT_ALLOWED', message, { details: { allowed } });
  return errorResponse(error, { allow });
}

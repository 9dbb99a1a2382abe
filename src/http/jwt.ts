/** Callers with a JWT of an OpenID Connect provider. */
import type { JSONWebKeySet, JWTPayload, JWTVerifyOptions } from 'jose';
import { invalid, messageOf, PerdureError } from '../contract/errors.ts';
import { checkName, type Principal, type Role, rolesAmong, unauthorized } from './principal.ts';

/** Whose JWTs are accepted, and which claims say who the caller is. */
export interface JwtOptions {
  /** The provider's `iss`, such as `https://login.example.com`. Plain `http` only on this machine. */
  issuer: string;
  /** What `aud` must contain: the name of this API at the provider. */
  audience: string;
  /** Where its keys are. Default: what `<issuer>/.well-known/openid-configuration` says. */
  jwksUrl?: string | undefined;
  /** Signatures that are accepted, asymmetric ones only. Default: RS256, PS256, ES256 and EdDSA. */
  algorithms?: readonly string[] | undefined;
  /** The claim with the caller's name. It must be one that users cannot change themselves. Default: `sub`. */
  nameClaim?: string | undefined;
  /**
   * The claim with the roles, a list or a text with spaces. Other names in it are ignored. Default: `roles`. A claim
   * within another one has a dot: `realm_access.roles`.
   */
  rolesClaim?: string | undefined;
  /**
   * The claim with the tenant. A token without it is refused. Default: callers have no tenant, and reach all sessions.
   */
  tenantClaim?: string | undefined;
}

const ALGORITHMS: readonly string[] = ['RS256', 'PS256', 'ES256', 'EdDSA'];
const ASYMMETRIC = /^(RS|PS|ES)(256|384|512)$|^(EdDSA|Ed25519)$/;
/** How far the provider's clock may be from ours, in seconds. */
const CLOCK_S = 5;
/** How long the provider may take to give its keys, in milliseconds. */
const FETCH_MS = 5_000;
/** After this time keys are fetched again. Until that succeeds, the known ones are used. */
const FRESH_MS = 600_000;
/** A token with an unknown key causes a new fetch of the keys, but at most one in this time. */
const PAUSE_MS = 10_000;
/** How long after a failed first fetch the next one may begin. */
const RETRY_MS = 1_000;

/** The reason and message for a refused token, by the error code of `jose`. */
const REFUSALS: Readonly<Record<string, readonly [reason: string, message: string]>> = {
  ERR_JWT_EXPIRED: ['expired', 'The JWT has expired. Get a new one from the identity provider'],
  ERR_JOSE_ALG_NOT_ALLOWED: ['algorithm', 'The JWT is not signed with an algorithm that this server accepts'],
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: ['signature', 'The signature of the JWT is not valid'],
  ERR_JWKS_NO_MATCHING_KEY: ['unknown_key', 'The JWT is signed with a key that its issuer does not publish'],
};

/** Whether a token has the form of a JWT. */
export function isJwt(token: string): boolean {
  return /^[\w-]+\.[\w-]*\.[\w-]*$/.test(token);
}

/**
 * Verifies JWTs.
 *
 * @throws PerdureError `INVALID_ARGUMENT` naming the option. The returned function throws `UNAUTHORIZED`, with the
 * reason in `details.reason`, and `SERVER_UNAVAILABLE` when the provider's keys cannot be read
 */
export function jwtVerifier(options: JwtOptions): (token: string) => Promise<Principal> {
  const { issuer, audience, jwksUrl, algorithms = ALGORITHMS } = options;
  checkUrl('jwt.issuer', issuer);
  if (typeof audience !== 'string' || audience === '') throw invalid('jwt.audience', 'is missing');
  if (jwksUrl !== undefined) checkUrl('jwt.jwksUrl', jwksUrl);
  const weak = algorithms.find((name) => !ASYMMETRIC.test(name));
  if (weak !== undefined || algorithms.length === 0) {
    throw invalid(
      'jwt.algorithms',
      `${weak ?? 'an empty list'} is not supported. Write some of ${ALGORITHMS.join(', ')}`,
    );
  }
  const keys = new Keys(issuer, jwksUrl);
  const pinned: JWTVerifyOptions = {
    issuer,
    audience,
    algorithms: [...algorithms],
    clockTolerance: CLOCK_S,
    requiredClaims: ['exp'],
  };
  return async (token) => principalOf(await verified(token, keys, pinned), options);
}

async function verified(token: string, keys: Keys, pinned: JWTVerifyOptions): Promise<JWTPayload> {
  const { createLocalJWKSet, errors, jwtVerify } = await import('jose');
  const verify = async (set: JSONWebKeySet): Promise<JWTPayload> =>
    (await jwtVerify(token, createLocalJWKSet(set), pinned)).payload;
  try {
    try {
      return await verify(await keys.known());
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      // The provider may have a new key.
      return await verify(await keys.again());
    }
  } catch (error) {
    if (error instanceof errors.JWTClaimValidationFailed) {
      const { claim } = error;
      const advice =
        claim === 'aud' || claim === 'iss' ? `. This server accepts ${pinnedText(pinned, claim)}` : '';
      throw unauthorized(
        claim === 'aud' ? 'audience' : claim === 'iss' ? 'issuer' : 'claim',
        `The JWT is refused: ${error.message}${advice}`,
      );
    }
    if (!(error instanceof errors.JOSEError)) throw error;
    const [reason, message] = REFUSALS[error.code] ?? ['malformed', `The JWT is refused: ${error.message}`];
    throw unauthorized(reason, message);
  }
}

function pinnedText({ audience, issuer }: JWTVerifyOptions, claim: 'aud' | 'iss'): string {
  return claim === 'aud' ? `the audience ${String(audience)}` : `the issuer ${String(issuer)}`;
}

function principalOf(payload: JWTPayload, options: JwtOptions): Principal {
  const { nameClaim = 'sub', rolesClaim = 'roles', tenantClaim } = options;
  const text = (claim: string): string => {
    try {
      return checkName(claim, claimOf(payload, claim));
    } catch (error) {
      throw unauthorized('claim', `The claim ${messageOf(error)}. Configure the identity provider to set it`);
    }
  };
  const said = claimOf(payload, rolesClaim);
  const names: readonly unknown[] =
    typeof said === 'string' ? said.split(' ') : Array.isArray(said) ? said : [];
  const roles: Role[] = rolesAmong(names);
  return { name: text(nameClaim), roles, tenant: tenantClaim === undefined ? null : text(tenantClaim) };
}

/**
 * A claim by its name, or by a path with dots if it is inside another claim. Names such as `https://example.com/roles`
 * have dots, too.
 */
function claimOf(claims: JWTPayload, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  let value: unknown = claims;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/** The keys of a provider. They stay in use while it does not answer. */
class Keys {
  readonly #issuer: string;
  #url: string | undefined;
  #set: JSONWebKeySet | undefined;
  /** When a fetch last began, on the clock of `performance`. */
  #askedAt = Number.NEGATIVE_INFINITY;
  /** When an unknown key last caused a fetch. */
  #missedAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<JSONWebKeySet> | undefined;
  #failure: PerdureError | undefined;

  constructor(issuer: string, url: string | undefined) {
    this.#issuer = issuer;
    this.#url = url;
  }

  /** The known keys. Old ones are fetched again in the background. */
  async known(): Promise<JSONWebKeySet> {
    if (this.#set === undefined) return this.#first();
    if (performance.now() - this.#askedAt > FRESH_MS) this.#fetch().catch(() => undefined);
    return this.#set;
  }

  /** Fetches the first keys. While the provider is down, callers do not each wait for it. */
  async #first(): Promise<JSONWebKeySet> {
    if (this.#failure !== undefined && performance.now() - this.#askedAt < RETRY_MS) throw this.#failure;
    return this.#fetch();
  }

  /**
   * Fetches the keys again, or returns the known keys soon after such a fetch.
   *
   * @throws PerdureError `SERVER_UNAVAILABLE`
   */
  async again(): Promise<JSONWebKeySet> {
    if (performance.now() - this.#missedAt > PAUSE_MS) {
      this.#missedAt = performance.now();
      return this.#fetch();
    }
    // The token may have a new key that could not be fetched.
    if (this.#failure !== undefined) throw this.#failure;
    return this.known();
  }

  #fetch(): Promise<JSONWebKeySet> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(): Promise<JSONWebKeySet> {
    this.#askedAt = performance.now();
    try {
      this.#url ??= await this.#discover();
      const { keys } = (await readJson(this.#url)) as Partial<JSONWebKeySet>;
      if (!Array.isArray(keys)) throw new Error(`${this.#url} has no list of keys`);
      this.#failure = undefined;
      this.#set = { keys };
      return this.#set;
    } catch (error) {
      this.#failure = new PerdureError(
        'SERVER_UNAVAILABLE',
        `The keys of the identity provider ${this.#issuer} cannot be read: ${messageOf(error)}. Try again`,
        { details: { issuer: this.#issuer }, cause: error },
      );
      throw this.#failure;
    }
  }

  async #discover(): Promise<string> {
    const url = `${this.#issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const { issuer, jwks_uri: jwks } = (await readJson(url)) as { issuer?: unknown; jwks_uri?: unknown };
    if (issuer !== this.#issuer)
      throw new Error(`${url} is of the issuer ${String(issuer)}, not ${this.#issuer}`);
    if (typeof jwks !== 'string') throw new Error(`${url} has no jwks_uri`);
    checkUrl('jwks_uri', jwks);
    return jwks;
  }
}

async function readJson(url: string): Promise<unknown> {
  const answer = await fetch(url, {
    headers: { accept: 'application/json' },
    redirect: 'error',
    signal: AbortSignal.timeout(FETCH_MS),
  }).catch((error: unknown) => {
    const { cause } = error as { cause?: unknown };
    throw new Error(`${url} does not answer: ${messageOf(cause ?? error)}`);
  });
  if (!answer.ok) throw new Error(`${url} answers ${answer.status}`);
  return answer.json();
}

/** Keys that come over plain HTTP could be anybody's. */
function checkUrl(field: string, text: string): void {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(url?.hostname ?? '');
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && isLocal)) return;
  throw invalid(field, `${JSON.stringify(text)} is no https URL`);
}

/** Who may call an HTTP API: the options that say so. */
import type { Command } from 'commander';
import { PerdureError } from '../contract/errors.ts';
import type { HttpApiOptions, JwtOptions, TokenOptions } from '../http/index.ts';
import { jsonOf } from './input.ts';
import { callersToken } from './serving.ts';

export interface CallersOptions {
  token?: string;
  tokens?: string;
  oidcIssuer?: string;
  oidcAudience?: string;
  oidcJwks?: string;
  oidcNameClaim?: string;
  oidcRolesClaim?: string;
  oidcTenantClaim?: string;
}

/** Adds the options to a verb. */
export function withCallers(command: Command): Command {
  return command
    .option(
      '--token <text>',
      'token that callers share, at least 16 characters (default: PERDURE_HTTP_TOKEN, or a new token, which is printed, if no other caller is named)',
    )
    .option(
      '--tokens <json>',
      'tokens of callers with names, as JSON or @file: [{"token", "name", "roles": ["read", "talk", "decide", "operate"], "tenant"?}] (default: PERDURE_HTTP_TOKENS)',
    )
    .option('--oidc-issuer <url>', 'accept JWTs of this OpenID Connect provider')
    .option('--oidc-audience <name>', 'the audience of its JWTs: the name of this API at the provider')
    .option('--oidc-jwks <url>', 'where its keys are (default: as its discovery document says)')
    .option('--oidc-name-claim <name>', "the claim with the caller's name (default: sub)")
    .option('--oidc-roles-claim <name>', 'the claim with the roles (default: roles)')
    .option('--oidc-tenant-claim <name>', 'the claim with the tenant; a JWT without it is refused');
}

/** The callers, and how to print them. */
export interface Callers {
  access: Pick<HttpApiOptions, 'token' | 'tokens' | 'jwt'>;
  /** A new token, to be printed. */
  shown: string | undefined;
  /** Whether a token can be copied from PERDURE_HTTP_TOKEN, or from `shown`. */
  isCopied: boolean;
  /** The lines to print about the callers. */
  lines: () => string[];
}

/** Reads the options. @throws PerdureError `INVALID_ARGUMENT` naming the option */
export async function callersOf(options: CallersOptions): Promise<Callers> {
  const { token: typed } = options;
  const tokens = await tokensOf(options.tokens);
  const jwt = jwtOf(options);
  const isShared =
    (tokens === undefined && jwt === undefined) ||
    typed !== undefined ||
    (process.env['PERDURE_HTTP_TOKEN'] ?? '') !== '';
  const { token, shown } = isShared
    ? callersToken(typed, 'PERDURE_HTTP_TOKEN')
    : { token: undefined, shown: undefined };
  const from = typed === undefined ? 'the value of PERDURE_HTTP_TOKEN' : 'the value of --token';
  return {
    access: { token, tokens, jwt },
    shown,
    // A token that was typed is in no variable, and we do not print it.
    isCopied: isShared && typed === undefined,
    lines: () => [
      ...(isShared ? [`token       ${shown ?? from}`] : []),
      ...(tokens === undefined ? [] : [`callers     ${tokens.map(({ name }) => name).join(', ')}`]),
      ...(jwt === undefined ? [] : [`JWTs        of ${jwt.issuer} for ${jwt.audience}`]),
    ],
  };
}

function jwtOf(options: CallersOptions): JwtOptions | undefined {
  const { oidcIssuer: issuer, oidcAudience: audience, oidcJwks: jwksUrl } = options;
  const { oidcNameClaim: nameClaim, oidcRolesClaim: rolesClaim, oidcTenantClaim: tenantClaim } = options;
  const given = [issuer, audience, jwksUrl, nameClaim, rolesClaim, tenantClaim];
  if (given.every((option) => option === undefined)) return undefined;
  const missing = issuer === undefined ? '--oidc-issuer' : audience === undefined ? '--oidc-audience' : null;
  if (issuer !== undefined && audience !== undefined) {
    return { issuer, audience, jwksUrl, nameClaim, rolesClaim, tenantClaim };
  }
  const message = `${missing} is missing. JWTs need --oidc-issuer and --oidc-audience`;
  throw new PerdureError('INVALID_ARGUMENT', message, { details: { option: missing } });
}

/** The named tokens of the option, or of the variable. The API checks each of them. */
async function tokensOf(option: string | undefined): Promise<TokenOptions[] | undefined> {
  const name = option === undefined ? 'PERDURE_HTTP_TOKENS' : '--tokens';
  const text = option ?? (process.env['PERDURE_HTTP_TOKENS'] || undefined);
  if (text === undefined) return undefined;
  const tokens = await jsonOf(name, text);
  if (Array.isArray(tokens)) return tokens as unknown as TokenOptions[];
  const message = `${name} is no list. Write '[{"token": "…", "name": "ada", "roles": ["read"]}]'`;
  throw new PerdureError('INVALID_ARGUMENT', message, { details: { option: name } });
}

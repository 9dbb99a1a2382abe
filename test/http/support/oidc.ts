/** An OpenID Connect provider: its discovery document, its keys, and tokens that it signs. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';
import { onTestFinished } from 'vitest';

/** Claims of a token. `undefined` leaves one out. */
export type Claims = { [claim in keyof JWTPayload]: JWTPayload[claim] | undefined };

export interface Provider {
  readonly issuer: string;
  /** Requests for keys so far. */
  readonly asked: () => number;
  /** A token of a key, by default the first. It is valid for an hour unless `claims` says otherwise. */
  sign(claims: Claims, options?: { kid?: string; alg?: string }): Promise<string>;
  /** Adds a key, which is published unless it is `hidden`. */
  addKey(kid: string, options?: { hidden?: true }): Promise<void>;
  /** Answers 500 from now on, or no longer. */
  fail(isDown: boolean): void;
}

export const AUDIENCE = 'perdure-api';

/** Opens a provider for the running test. */
export async function openProvider(): Promise<Provider> {
  const secrets = new Map<string, CryptoKey>();
  const published: JWK[] = [];
  let isDown = false;
  let asked = 0;
  const server = createServer(({ url }, response) => {
    if (url === '/keys') asked += 1;
    const body = url === '/keys' ? { keys: published } : { issuer, jwks_uri: `${issuer}/keys` };
    response.writeHead(isDown ? 500 : 200, { 'content-type': 'application/json' });
    response.end(isDown ? '{}' : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const addKey: Provider['addKey'] = async (kid, { hidden } = {}) => {
    const { privateKey, publicKey } = await generateKeyPair('ES256');
    secrets.set(kid, privateKey);
    if (hidden !== true) published.push({ ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' });
  };
  await addKey('first');
  return {
    issuer,
    asked: () => asked,
    addKey,
    fail: (down) => {
      isDown = down;
    },
    sign: async (claims, { kid = 'first', alg = 'ES256' } = {}) => {
      const now = Math.floor(Date.now() / 1_000);
      const payload: Claims = { iss: issuer, aud: AUDIENCE, iat: now, exp: now + 3_600, ...claims };
      const secret = alg.startsWith('HS') ? new TextEncoder().encode('s'.repeat(64)) : secrets.get(kid);
      return new SignJWT(payload as JWTPayload)
        .setProtectedHeader({ alg, kid })
        .sign(secret ?? new Uint8Array());
    },
  };
}

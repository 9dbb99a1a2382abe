/** Serves Temporal's codec server protocol, with which its web UI and its command line show encrypted payloads. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { DataConverter, Payload } from '@temporalio/common';
import { invalid, isPerdureError, messageOf } from '../contract/errors.ts';
import { decode, encode } from '../temporal/sdk-internals.ts';

/** The least number of characters of a token, so that nobody guesses it. */
const TOKEN_LENGTH = 16;

/** Options of {@link createCodecServer}. */
export interface CodecServerOptions {
  /** The data converter whose payload codecs decode and encode. */
  dataConverter: DataConverter;
  /** What callers send as `Authorization: Bearer …`, or before `/decode` in the path. At least 16 characters. */
  token: string;
  /** Origins of web UIs that may call, such as `http://localhost:8233`. */
  origins?: readonly string[];
}

/** A payload in protobuf's JSON: bytes are base64. */
interface JsonPayload {
  metadata?: Record<string, string>;
  data?: string;
}

/**
 * Creates a handler for `POST /decode` and `POST /encode`. The token is in the header, or in the path
 * (`/<token>/decode`) for a web UI that sends no header. Codecs get no serialization context.
 *
 * @throws PerdureError `INVALID_ARGUMENT` for a short token, or without payload codecs
 */
export function createCodecServer({
  dataConverter,
  token,
  origins = [],
}: CodecServerOptions): (request: Request) => Promise<Response> {
  const { payloadCodecs: codecs = [] } = dataConverter;
  if (codecs.length === 0) throw invalid('dataConverter', 'has no payloadCodecs to serve');
  if (!/^[\w-]*$/.test(token) || token.length < TOKEN_LENGTH) {
    throw invalid(
      'token',
      `write at least ${TOKEN_LENGTH} letters, digits, - or _. Make one: openssl rand -hex 32`,
    );
  }
  return async (request) => {
    const origin = request.headers.get('origin') ?? '';
    const headers: Record<string, string> = origins.includes(origin)
      ? {
          'access-control-allow-origin': origin,
          'access-control-allow-methods': 'POST, OPTIONS',
          'access-control-allow-headers': 'authorization, content-type, x-namespace',
          'access-control-allow-credentials': 'true',
          vary: 'origin',
        }
      : {};
    const answer = (status: number, body: object): Response => Response.json(body, { status, headers });
    if (request.method === 'OPTIONS') return new Response(null, { status: 204, headers });
    const [what = '', inPath, ...more] = new URL(request.url).pathname.slice(1).split('/').reverse();
    const inHeader = /^Bearer (\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
    if (
      more.length > 0 ||
      ![inPath, inHeader].some((given) => given !== undefined && isEqual(given, token))
    ) {
      return answer(401, {
        code: 'UNAUTHORIZED',
        message: 'Send the token of this server: Authorization: Bearer <token>',
      });
    }
    if (request.method !== 'POST' || (what !== 'decode' && what !== 'encode')) {
      return answer(404, { code: 'ROUTE_NOT_FOUND', message: 'Use POST /decode or POST /encode' });
    }
    let payloads: Payload[];
    try {
      payloads = ((await request.json()) as { payloads: JsonPayload[] }).payloads.map(fromJson);
    } catch {
      return answer(400, {
        code: 'INVALID_ARGUMENT',
        message: 'body: write {"payloads": [{"metadata": {…}, "data": "…"}]}',
      });
    }
    try {
      return answer(200, {
        payloads: (await (what === 'encode' ? encode : decode)(codecs, payloads)).map(toJson),
      });
    } catch (error) {
      const code = isPerdureError(error) ? error.code : 'INTERNAL';
      return answer(500, { code, message: messageOf(error) });
    }
  };
}

/** Takes the same time for every wrong token. */
function isEqual(given: string, token: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}

function fromJson({ metadata = {}, data = '' }: JsonPayload): Payload {
  const entries = Object.entries(metadata).map(([name, value]) => [name, Buffer.from(value, 'base64')]);
  return {
    metadata: Object.fromEntries(entries) as Record<string, Uint8Array>,
    data: Buffer.from(data, 'base64'),
  };
}

function toJson({ metadata, data }: Payload): JsonPayload {
  const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
  const entries = Object.entries(metadata ?? {}).map(([name, value]) => [name, base64(value)]);
  return {
    metadata: Object.fromEntries(entries) as Record<string, string>,
    data: base64(data ?? new Uint8Array()),
  };
}

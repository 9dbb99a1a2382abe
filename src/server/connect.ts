/** Chooses a Temporal server: the caller's, the user's configured one, or the embedded dev server. */

import { type Connection, type ConnectionOptions, isGrpcServiceError } from '@temporalio/client';
import { type ClientConnectConfig, loadClientConnectConfig } from '@temporalio/envconfig';
import { messageOf, PerdureError } from '../contract/errors.ts';
import type { Environment } from './cache-dir.ts';
import { openConnection } from './probe.ts';
import type { ServerHandle, StartServerOptions } from './server-options.ts';
import { findServer, startServer } from './start-server.ts';

const DEFAULT_ADDRESS = 'localhost:7233';
const DEFAULT_NAMESPACE = 'default';
const CONNECT_MS = 3_000;

/** Options that a client's `Connection` and a worker's `NativeConnection` share. */
export interface ServerConnectionOptions {
  /** `host:port`. */
  readonly address: string;
  readonly tls?: Exclude<ConnectionOptions['tls'], null | undefined>;
  readonly apiKey?: string;
  readonly metadata?: Record<string, string>;
}

/** Where the address came from, for the error when no server answers. */
export type ServerSource = 'option' | 'env' | 'config-file' | 'embedded' | 'default';

/** Options of {@link resolveServer} and {@link connect}. */
export interface ResolveServerOptions {
  /** An explicit address wins over everything. The user's configured TLS and API key do not apply to it. */
  readonly address?: string;
  /** Default: `TEMPORAL_NAMESPACE` or the config file's, where they apply, else `default`. */
  readonly namespace?: string;
  /** With {@link address}: how to connect. */
  readonly tls?: ServerConnectionOptions['tls'];
  /** With {@link address}: an API key, which also turns TLS on. */
  readonly apiKey?: string;
  /** Profile of the user's Temporal config file. Default `TEMPORAL_PROFILE`, else `default`. */
  readonly profile?: string;
  /**
   * Whether a dev server may be started when nothing is configured: true, or how to start it. With false (the default),
   * a dev server that already runs in {@link dir} is still used.
   */
  readonly embedded?: boolean | Omit<StartServerOptions, 'namespace'>;
  /** Where a dev server keeps its file. Default `.perdure` in the working directory. */
  readonly dir?: string;
  /** Where `TEMPORAL_*` and the path of the config file are read from; the process's own environment by default. */
  readonly env?: Environment;
  /** Receives progress messages, one line each. */
  readonly onProgress?: (line: string) => void;
}

/** A server to talk to. Nothing is connected yet. */
export interface ResolvedServer {
  readonly connectionOptions: ServerConnectionOptions;
  readonly namespace: string;
  readonly source: ServerSource;
  /** The source in words: "TEMPORAL_ADDRESS", "profile prod of the Temporal config file", … */
  readonly sourceName: string;
  /** The dev server, if one was chosen. The caller stops it. */
  readonly server: ServerHandle | null;
}

/** A {@link ResolvedServer} that answers. */
export interface ConnectedServer extends ResolvedServer {
  readonly connection: Connection;
  /** Closes the connection and stops the dev server if this call started it. */
  close(): Promise<void>;
}

/**
 * Chooses a server: the explicit address; `TEMPORAL_ADDRESS`; the user's Temporal config file; a dev server that
 * runs in this directory; a new dev server, if allowed; else Temporal's default address. Only a dev server is known to
 * answer: other servers are not asked.
 *
 * @throws PerdureError `INVALID_ARGUMENT` for a config file or profile that cannot be read; `SERVER_UNAVAILABLE`
 * when a dev server must be started and cannot be.
 */
export async function resolveServer(options: ResolveServerOptions = {}): Promise<ResolvedServer> {
  const env = options.env ?? process.env;
  if (options.address) {
    const { address, tls, apiKey } = options;
    return {
      connectionOptions: {
        address,
        ...(tls !== undefined && { tls }),
        ...(apiKey !== undefined && { apiKey, tls: tls ?? true }),
      },
      namespace: options.namespace ?? DEFAULT_NAMESPACE,
      source: 'option',
      sourceName: 'the address option',
      server: null,
    };
  }
  const configured = loadUserConfig(options, env);
  const namespace = options.namespace ?? configured.namespace;
  if (configured.connectionOptions.address) {
    const fromEnv = env['TEMPORAL_ADDRESS'] !== undefined;
    const profile = options.profile ?? env['TEMPORAL_PROFILE'] ?? 'default';
    return {
      connectionOptions: compact(configured.connectionOptions, configured.connectionOptions.address),
      namespace: namespace ?? DEFAULT_NAMESPACE,
      source: fromEnv ? 'env' : 'config-file',
      sourceName: fromEnv ? 'TEMPORAL_ADDRESS' : `profile ${profile} of the Temporal config file`,
      server: null,
    };
  }
  const server = await embeddedServer(options, namespace);
  return {
    connectionOptions: { address: server?.address ?? DEFAULT_ADDRESS },
    namespace: server?.namespace ?? namespace ?? DEFAULT_NAMESPACE,
    source: server ? 'embedded' : 'default',
    sourceName: server ? 'the dev server of this directory' : "Temporal's default address",
    server,
  };
}

/**
 * Chooses a server as {@link resolveServer} does and connects to it.
 *
 * @throws PerdureError `SERVER_UNAVAILABLE` within a few seconds when it does not answer, naming the address,
 * where that came from, and what to do next; otherwise as {@link resolveServer}.
 */
export async function connect(options: ResolveServerOptions = {}): Promise<ConnectedServer> {
  const resolved = await resolveServer(options);
  try {
    const connection = await openConnection(resolved.connectionOptions, resolved.namespace, CONNECT_MS);
    return {
      ...resolved,
      connection,
      async close() {
        await connection.close();
        await resolved.server?.stop();
      },
    };
  } catch (cause) {
    await resolved.server?.stop();
    throw unavailable(resolved, cause);
  }
}

async function embeddedServer(
  options: ResolveServerOptions,
  namespace?: string,
): Promise<ServerHandle | null> {
  const start = typeof options.embedded === 'object' ? options.embedded : {};
  const merged: StartServerOptions = {
    ...(options.dir !== undefined && { dir: options.dir }),
    ...(options.env && { env: options.env }),
    ...(options.onProgress && { onProgress: options.onProgress }),
    ...(namespace !== undefined && { namespace }),
    ...start,
  };
  return options.embedded ? startServer(merged) : findServer(merged);
}

function loadUserConfig(options: ResolveServerOptions, env: Environment): ClientConnectConfig {
  const overrideEnvVars: Record<string, string> = {};
  for (const [key, value] of Object.entries(env)) if (value !== undefined) overrideEnvVars[key] = value;
  try {
    return loadClientConnectConfig({
      overrideEnvVars,
      ...(options.profile !== undefined && { profile: options.profile }),
    });
  } catch (cause) {
    const file = env['TEMPORAL_CONFIG_FILE'];
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `The Temporal config${file ? ` file ${file}` : ''} cannot be used: ${messageOf(cause)}`,
      { details: { file: file ?? null, profile: options.profile ?? env['TEMPORAL_PROFILE'] ?? null }, cause },
    );
  }
}

/** The loader sets absent options to `undefined`, which is not the same as leaving them out. */
function compact(loaded: ClientConnectConfig['connectionOptions'], address: string): ServerConnectionOptions {
  const { tls, apiKey, metadata } = loaded;
  return {
    address,
    ...(tls !== undefined && tls !== null && { tls }),
    ...(apiKey !== undefined && { apiKey }),
    ...(metadata !== undefined && { metadata: metadata as Record<string, string> }),
  };
}

function unavailable(resolved: ResolvedServer, cause: unknown): PerdureError {
  const { address } = resolved.connectionOptions;
  const { namespace, source, sourceName } = resolved;
  const reason = isGrpcServiceError(cause) ? cause.details : messageOf(cause);
  return new PerdureError(
    'SERVER_UNAVAILABLE',
    `No Temporal server answers for namespace ${namespace} at ${address} (from ${sourceName}): ${reason}. ${nextStep(source)}`,
    { details: { address, namespace, source }, cause },
  );
}

function nextStep(source: ServerSource): string {
  const dev = 'run `perdure dev` for a server on this machine';
  switch (source) {
    case 'option':
      return `Check the address, or leave it out and ${dev}.`;
    case 'env':
      return `Start that server, or unset TEMPORAL_ADDRESS and ${dev}.`;
    case 'config-file':
      return `Start that server, choose another profile, or remove the address from it and ${dev}.`;
    case 'embedded':
    case 'default':
      return `Next: ${dev}, or set TEMPORAL_ADDRESS.`;
  }
}

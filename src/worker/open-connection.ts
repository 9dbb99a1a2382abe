import { loadClientConnectConfig } from '@temporalio/envconfig';
import { NativeConnection, type NativeConnectionOptions, type WorkerPlugin } from '@temporalio/worker';
import { PerdureError } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';

/**
 * Connects a worker. Without TLS, and so to a near server, nothing is compressed unless `grpcCompression` says so.
 *
 * @throws PerdureError `SERVER_UNAVAILABLE`
 */
export async function openConnection(options: NativeConnectionOptions): Promise<NativeConnection> {
  const far = Boolean(options.tls) || options.apiKey !== undefined;
  try {
    return await NativeConnection.connect(far ? options : { grpcCompression: { codec: 'none' }, ...options });
  } catch (cause) {
    throw new PerdureError(
      'SERVER_UNAVAILABLE',
      `The Temporal server at ${options.address ?? 'localhost:7233'} cannot be reached. Start one: perdure dev`,
      { cause },
    );
  }
}

/** Closes a connection after the run of the one worker that it was opened for. */
export function closing(connection: NativeConnection): WorkerPlugin {
  return {
    name: 'perdure-connection',
    runWorker: async (worker, next) => {
      try {
        await next(worker);
      } finally {
        // A worker that failed may still hold the connection, and its own error says more.
        await connection.close().catch(() => {});
      }
    },
  };
}

/** The address: as given, or as Temporal's own clients find it. */
export function whereTo(address: string | NativeConnectionOptions | undefined): {
  connection: NativeConnectionOptions;
  namespace?: string;
} {
  if (typeof address === 'string') return { connection: { address } };
  if (address !== undefined) return { connection: address };
  const { connectionOptions, namespace } = loadClientConnectConfig();
  return { connection: connectionOptions, ...defined({ namespace }) };
}

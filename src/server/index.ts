/** Finds or starts a Temporal server for development and tests. */

export {
  type ConnectedServer,
  connect,
  type ResolveServerOptions,
  resolveServer,
} from './connect.ts';
export { TEMPORAL_CACHE_NAME, TEMPORAL_CLI_VERSION } from './download.ts';
export {
  ensureSearchAttributes,
  SESSION_SEARCH_ATTRIBUTES,
} from './probe.ts';
export {
  DEV_SERVER_DYNAMIC_CONFIG,
  type ServerHandle,
  type StartServerOptions,
} from './server-options.ts';
export { findServer, startServer } from './start-server.ts';
export { type BinaryAttempt, findTemporalBinary } from './temporal-binary.ts';

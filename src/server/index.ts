/** Finding or starting a Temporal server for development and tests. */

export {
  type ConnectedServer,
  connect,
  type ResolvedServer,
  type ResolveServerOptions,
  resolveServer,
  type ServerConnectionOptions,
  type ServerSource,
} from './connect.ts';
export {
  ensureSearchAttributes,
  SESSION_SEARCH_ATTRIBUTES,
  type SearchAttributeTypeName,
  type SearchAttributeTypes,
} from './probe.ts';
export {
  DEV_SERVER_DYNAMIC_CONFIG,
  type ServerHandle,
  type StartServerOptions,
} from './server-options.ts';
export { findServer, startServer } from './start-server.ts';
export {
  type BinaryAttempt,
  type FindTemporalOptions,
  findTemporalBinary,
  TEMPORAL_CLI_VERSION,
  type TemporalBinary,
} from './temporal-binary.ts';

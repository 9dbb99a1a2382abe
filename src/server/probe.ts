/** Checks whether a Temporal server answers, and registers our search attributes. */

import { Connection, type ConnectionOptions, isGrpcServiceError } from '@temporalio/client';
import { SEARCH_ATTRIBUTE } from '../contract/names.ts';

/** The types a search attribute can have, by the names that the Temporal CLI uses. */
export type SearchAttributeTypeName =
  | 'Text'
  | 'Keyword'
  | 'Int'
  | 'Double'
  | 'Bool'
  | 'Datetime'
  | 'KeywordList';

/** Search attributes by name. */
export type SearchAttributeTypes = Readonly<Record<string, SearchAttributeTypeName>>;

/** The search attributes of sessions. */
export const SESSION_SEARCH_ATTRIBUTES: SearchAttributeTypes = Object.fromEntries(
  Object.values(SEARCH_ATTRIBUTE).map((name) => [name, 'Keyword']),
);

/** The numbers of the API's `IndexedValueType`. */
const INDEXED_VALUE_TYPE = {
  Text: 1,
  Keyword: 2,
  Int: 3,
  Double: 4,
  Bool: 5,
  Datetime: 6,
  KeywordList: 7,
} as const satisfies Record<SearchAttributeTypeName, number>;

/** The gRPC status of the same name; the client package does not export the enum. */
const ALREADY_EXISTS = 6;

/**
 * Connects and describes the namespace. A server that answers this can start workflows.
 *
 * @param timeoutMs applies to the connection, and then to the request.
 * @returns the connection; the caller closes it.
 * @throws TransportError, ServiceError or TLS errors, as the Temporal client throws them.
 */
export async function openConnection(
  options: ConnectionOptions,
  namespace: string,
  timeoutMs: number,
): Promise<Connection> {
  const connection = await Connection.connect({
    ...options,
    connectTimeout: timeoutMs,
    // A page of history can exceed gRPC's default of 4 MB. The client sets this option without its prefix, so it has no
    // effect there.
    channelArgs: { 'grpc.max_receive_message_length': 128 * 1024 * 1024, ...options.channelArgs },
  });
  try {
    await connection.withDeadline(Date.now() + timeoutMs, () =>
      connection.workflowService.describeNamespace({ namespace }),
    );
    return connection;
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/**
 * Registers the search attributes that the server does not have yet.
 *
 * @returns the names that were added.
 * @throws ServiceError when the server refuses: no permission, or too many attributes of that type.
 */
export async function ensureSearchAttributes(
  connection: Connection,
  namespace: string,
  attributes: SearchAttributeTypes,
): Promise<string[]> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const missing = Object.entries(attributes).filter(([name]) => customAttributes?.[name] === undefined);
  if (missing.length === 0) return [];
  try {
    await connection.operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing.map(([name, type]) => [name, INDEXED_VALUE_TYPE[type]])),
    });
  } catch (error) {
    // Another process registered them between our two requests.
    if (!(isGrpcServiceError(error) && Number(error.code) === ALREADY_EXISTS)) throw error;
  }
  return missing.map(([name]) => name);
}

/** Resolves when the server can start a workflow and accepts these search attributes. */
export async function settle(
  address: string,
  namespace: string,
  attributes?: SearchAttributeTypes,
): Promise<void> {
  const connection = await openConnection({ address }, namespace, 5_000);
  try {
    if (attributes) await ensureSearchAttributes(connection, namespace, attributes);
  } finally {
    await connection.close();
  }
}

/** Tracks which of our search attributes the namespace has, and tells sessions of a change. */
import { Client, type ClientOptions } from '@temporalio/client';
import { type NativeConnection, Runtime } from '@temporalio/worker';
import { messageOf } from '../contract/errors.ts';
import { SEARCH_ATTRIBUTE, SIGNAL } from '../contract/names.ts';
import { WAITING_PHASES } from '../contract/state.ts';
import { runningSessions } from '../temporal/visibility.ts';

/** `INDEXED_VALUE_TYPE_KEYWORD` of Temporal's API. */
const KEYWORD = 2;
/** How long the server's answer counts as current, in milliseconds. */
const FRESH_MS = 10_000;

const OURS: readonly string[] = Object.values(SEARCH_ATTRIBUTE);

/**
 * Our search attributes that the server knows. The server fails every workflow task that writes any other attribute,
 * and a session decides from its history alone what to write. So when a session is about to write an attribute that was
 * removed or has another type, the worker signals the known ones. The session's next attempt reads the signal.
 */
export class KnownAttributes {
  readonly #client: Client;
  readonly #namespace: string;
  readonly #connection: NativeConnection;
  #known: Promise<readonly string[]> = Promise.resolve([]);
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** The runs that wrote attributes since the last look. A run that writes again has probably failed before. */
  readonly #wrote = new Set<string>();
  #warned = false;

  constructor(
    connection: NativeConnection,
    namespace: string,
    dataConverter: ClientOptions['dataConverter'] | undefined,
  ) {
    this.#connection = connection;
    this.#namespace = namespace;
    this.#client = new Client({
      connection,
      namespace,
      ...(dataConverter === undefined ? {} : { dataConverter }),
    });
  }

  /** The attributes that sessions may write, as the server said at most `maxAgeMs` ago. */
  now(maxAgeMs: number = FRESH_MS): Promise<readonly string[]> {
    if (performance.now() - this.#lookedAt > maxAgeMs) {
      this.#lookedAt = performance.now();
      this.#wrote.clear();
      this.#known = this.#look(this.#known);
    }
    return this.#known;
  }

  /** Tells a session that is about to write unknown attributes which ones are known. */
  async check(
    { workflowId, runId }: { workflowId: string; runId: string },
    names: readonly string[],
  ): Promise<void> {
    const known = await this.now(this.#wrote.has(runId) ? 0 : FRESH_MS);
    this.#wrote.add(runId);
    if (names.every((name) => known.includes(name))) return;
    const session = this.#client.workflow.getHandle(workflowId, runId);
    await session.signal(SIGNAL.searchAttributes, { known }).catch((error: unknown) => {
      // The next attempt of the workflow task checks again.
      Runtime.instance().logger.warn(
        `search attributes: ${workflowId} was not told of a change: ${String(error)}`,
      );
    });
  }

  async #look(before: Promise<readonly string[]>): Promise<readonly string[]> {
    try {
      const listed = await this.#connection.operatorService.listSearchAttributes({
        namespace: this.#namespace,
      });
      return OURS.filter((name) => Number(listed.customAttributes?.[name]) === KEYWORD);
    } catch (error) {
      // Not every server allows this. Sessions work without search attributes.
      const known = await before;
      if (known.length === 0) this.#warnOnce(error);
      return known;
    }
  }

  #warnOnce(error: unknown): void {
    if (this.#warned) return;
    this.#warned = true;
    Runtime.instance().logger.warn(
      `search attributes: those of namespace ${this.#namespace} cannot be listed: ${messageOf(error)}. ` +
        'Sessions write none until they can, and lists show such sessions as unknown',
    );
  }
}

/** Statuses of open sessions. */
const OPEN_STATUSES = ['active', ...WAITING_PHASES];

/** Counts the open sessions of the namespace by status. @throws the server's error, also if it lacks our attributes */
export async function countSessions(
  { workflowService }: NativeConnection,
  namespace: string,
): Promise<ReadonlyMap<string, number>> {
  const counts = OPEN_STATUSES.map(async (status) => {
    const query = runningSessions(`${SEARCH_ATTRIBUTE.status} = '${status}'`);
    const { count } = await workflowService.countWorkflowExecutions({ namespace, query });
    return [status, Number(count)] as const;
  });
  return new Map(await Promise.all(counts));
}

/** A connection to Redis that is opened on demand, and given up when it does not answer. */
import type * as redis from 'redis';
import { messageOf } from '../contract/errors.ts';

/** How long connecting may take, and each answer, in milliseconds. */
const ANSWER_MS = 2_000;
/** Pause after a failure before the next try, in milliseconds. */
export const RETRY_MS = 250;

interface Connection {
  /** Names the connection for `CLIENT UNBLOCK`. */
  readonly id: string;
  sendCommand(args: (string | Buffer)[]): Promise<unknown>;
  destroy(): void;
}

/**
 * By default, the driver queues commands and reconnects for ever, which grows without bound while Redis hangs. Here
 * each command is answered in time, or fails together with its connection.
 */
export class RedisLink {
  readonly #url: string;
  readonly #onEnd: (error: unknown) => void;
  #connection: Promise<Connection> | null = null;
  #open: Connection | null = null;
  #retryAt = 0;
  #isClosed = false;

  /** @param onEnd - called with the reason when a connection, or a try to connect, has ended. */
  constructor(url: string, onEnd: (error: unknown) => void) {
    this.#url = url;
    this.#onEnd = onEnd;
  }

  /** Names the open connection. */
  get id(): string | null {
    return this.#open?.id ?? null;
  }

  /** @param blockMs - how long Redis itself may wait before it answers */
  async ask(args: (string | Buffer)[], blockMs = 0): Promise<unknown> {
    const connection = await this.#connected();
    const late = setTimeout(
      () => this.#end(connection, new Error(`no answer within ${blockMs + ANSWER_MS} ms`)),
      blockMs + ANSWER_MS,
    );
    late.unref();
    try {
      return await connection.sendCommand(args);
    } finally {
      clearTimeout(late);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#open?.destroy();
  }

  #connected(): Promise<Connection> {
    if (this.#connection === null && (this.#isClosed || Date.now() < this.#retryAt))
      return Promise.reject(new Error('Redis is not connected'));
    this.#connection ??= this.#connect().catch((error: unknown) => {
      this.#connection = null;
      this.#retryAt = Date.now() + RETRY_MS;
      if (!this.#isClosed) this.#onEnd(error);
      throw error;
    });
    return this.#connection;
  }

  async #connect(): Promise<Connection> {
    const { createClient, RESP_TYPES } = await loaded();
    const client = createClient({
      url: this.#url,
      RESP: 2,
      disableOfflineQueue: true,
      commandsQueueMaxLength: 10_000,
      commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } },
      socket: { connectTimeout: ANSWER_MS, reconnectStrategy: false },
    });
    let connection: Connection | null = null;
    client.on('error', (error: unknown) => {
      if (connection !== null) this.#end(connection, error);
    });
    // The server may accept the connection and then hang.
    const late = setTimeout(() => client.destroy(), 2 * ANSWER_MS);
    late.unref();
    try {
      await client.connect();
      // Live text may be lost, so it must not keep the process alive.
      client.unref();
      const id = String(await client.sendCommand<number>(['CLIENT', 'ID']));
      connection = { id, sendCommand: (args) => client.sendCommand(args), destroy: () => client.destroy() };
    } catch (error) {
      client.destroy();
      throw error;
    } finally {
      clearTimeout(late);
    }
    if (this.#isClosed) connection.destroy();
    this.#open = connection;
    return connection;
  }

  #end(connection: Connection, error: unknown): void {
    if (this.#open !== connection) return;
    this.#open = null;
    this.#connection = null;
    connection.destroy();
    if (!this.#isClosed) this.#onEnd(error);
  }
}

async function loaded(): Promise<typeof redis> {
  try {
    return await import('redis');
  } catch (cause) {
    throw new Error(
      `the package redis could not be loaded: ${messageOf(cause)}. Install it with npm install redis`,
      { cause },
    );
  }
}

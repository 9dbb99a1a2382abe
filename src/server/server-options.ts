/** Options, tuning and handle of a dev server. */

import type { Environment } from './cache-dir.ts';
import type { SearchAttributeTypes } from './probe.ts';

/** How long a dev server may take to start. Measured: 0.2 s on a quiet machine. */
export const DEFAULT_START_MS = 60_000;

/**
 * Settings of the dev server. `deploy/dynamic-config.yaml` has the same for a server with a real database.
 * - The stock dev server delays each activity by 42 ms (20 task reads a second) and each timer by a second. With these
 *   settings, a turn takes a tenth of the time.
 * - A closed run can be deleted after a second instead of half a minute.
 * - The polls of a frozen worker, which swallow tasks, end after five seconds instead of seventy.
 * - A task queue has one partition: a task in another partition than its poll could wait for two seconds.
 * - A worker gets an activity with the answer to its workflow task, which saves a fifth of a turn.
 * - The updates in flight to one workflow are limited to 4 MB, which the completion of one task can repeat.
 * - The time-out of a retried workflow task grows to seven seconds, not to ten minutes: after a crash loop a healthy
 *   worker waits little, and a long replay still has time.
 */
export const DEV_SERVER_DYNAMIC_CONFIG: Readonly<Record<string, string | number | boolean>> = {
  'history.transferProcessorMaxPollRPS': 100_000,
  'history.timerProcessorMaxPollRPS': 100_000,
  'history.timerProcessorMaxTimeShift': '10ms',
  'history.transferProcessorUpdateAckInterval': '1s',
  'history.workflowTaskRetryMaxInterval': '7s',
  'history.maxInFlightUpdatePayloads': 4_000_000,
  'system.enableActivityEagerExecution': true,
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
  'frontend.keepAliveTime': '2s',
  'frontend.keepAliveTimeout': '3s',
  'frontend.enableServerVersionCheck': false,
};

/**
 * A write-ahead log synced at its checkpoints: survives a SIGKILL of the server, not a power cut of the last moments.
 */
export const DEV_SERVER_SQLITE_PRAGMAS: Readonly<Record<string, string>> = {
  journal_mode: 'WAL',
  synchronous: 'NORMAL',
};

/** Options of {@link startServer}. */
export interface StartServerOptions {
  /**
   * Directory of the database, its lock and the log; created when missing. Default `.perdure` in the working directory.
   */
  readonly dir?: string;
  /** The database file. Default `temporal.db` in {@link dir}. */
  readonly dbFilename?: string;
  /** Store nothing: no file, no lock, no reuse. Default false. */
  readonly inMemory?: boolean;
  /** Created at start. Default `default`. */
  readonly namespace?: string;
  /** Port of the gRPC service. Default: a free one. */
  readonly port?: number;
  /** Whether to serve the web UI, on a free port or on this one. Default false. */
  readonly ui?: boolean | number;
  /** Registered before `startServer` resolves, also with a server that was already running. */
  readonly searchAttributes?: SearchAttributeTypes;
  /** Path of the Temporal CLI. Default: {@link findTemporalBinary}. */
  readonly binary?: string;
  /**
   * How long the server may take to start, in milliseconds. Does not include the time to find a binary. Default 60,000.
   */
  readonly startTimeoutMs?: number;
  /** Receives progress messages, one line each. */
  readonly onProgress?: (line: string) => void;
  /** The environment in which the binary is looked up. Default: the process's own. */
  readonly env?: Environment;
}

/** A dev server that answers. */
export interface ServerHandle {
  /** `host:port` of the gRPC service; the same after {@link restart}. */
  readonly address: string;
  readonly uiUrl: string | null;
  readonly namespace: string;
  /** Process id of the server; another one after {@link restart}. */
  readonly pid: number;
  /** Whether this call started the server. */
  readonly owned: boolean;
  /** The server's log file: warnings and errors. */
  readonly logFile: string;
  /**
   * Resolves when the server process has ended, unless it is being restarted because its database broke. Never resolves
   * for a server that is not ours.
   */
  ended(): Promise<void>;
  /** Stops the server and waits until it has ended. Does nothing when the server is not ours or has ended. */
  stop(): Promise<void>;
  /**
   * Kills the server with SIGKILL, as a crash would, and waits until it has ended.
   * @throws PerdureError `CONFLICT` when the server is not ours.
   */
  kill(): Promise<void>;
  /**
   * Starts the server again with the same file and address. Stops it first if it runs.
   * @throws PerdureError `CONFLICT` when the server is not ours; `SERVER_UNAVAILABLE` when it does not come up.
   */
  restart(): Promise<void>;
}

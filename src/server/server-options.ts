/** What a dev server is started with, what it is tuned to, and what is handed out when it answers. */

import type { Environment } from './cache-dir.ts';
import type { SearchAttributeTypes } from './probe.ts';

/** How long a dev server may take to answer. Measured: 0.2 s; a busy machine takes longer. */
export const DEFAULT_START_MS = 60_000;

/**
 * The stock dev server makes each activity wait 42 ms (20 task reads a second) and each timer a second. With
 * these, a turn of an agent takes a tenth of the time. `deploy/dynamic-config.yaml` has the same for a server
 * with a real database. A run that has just closed can be deleted after a second instead of half a minute,
 * and a worker that is frozen loses its polls, which swallow tasks, in five seconds instead of seventy. A task
 * that waits in another partition than the poll for it may wait for two seconds: there is one partition. A worker
 * that asks for an activity is handed it with the answer, which is a fifth of a turn. No client can hold a workflow up
 * with more updates at once than the completion of one task can repeat, which is 4 MB. Each retry of a workflow task
 * adds to its time-out, stock up to ten minutes: here up to two seconds, so that a healthy worker waits little after a
 * crash loop.
 */
export const DEV_SERVER_DYNAMIC_CONFIG: Readonly<Record<string, string | number | boolean>> = {
  'history.transferProcessorMaxPollRPS': 100_000,
  'history.timerProcessorMaxPollRPS': 100_000,
  'history.timerProcessorMaxTimeShift': '10ms',
  'history.transferProcessorUpdateAckInterval': '1s',
  'history.workflowTaskRetryMaxInterval': '2s',
  'history.maxInFlightUpdatePayloads': 4_000_000,
  'system.enableActivityEagerExecution': true,
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
  'frontend.keepAliveTime': '2s',
  'frontend.keepAliveTimeout': '3s',
  'frontend.enableServerVersionCheck': false,
};

/** A write-ahead log synced at its checkpoints: survives a SIGKILL of the server, not a power cut of the last moments. */
export const DEV_SERVER_SQLITE_PRAGMAS: Readonly<Record<string, string>> = {
  journal_mode: 'WAL',
  synchronous: 'NORMAL',
};

/** Options of {@link startServer}. */
export interface StartServerOptions {
  /** Directory of the database, its lock and the log; created when missing. Default `.perdure` in the working directory. */
  readonly dir?: string;
  /** The database file. Default `temporal.db` in {@link dir}. */
  readonly dbFilename?: string;
  /** Keep nothing: no file, no lock, no reuse. Default false. */
  readonly inMemory?: boolean;
  /** Created at start. Default `default`. */
  readonly namespace?: string;
  /** Port of the gRPC service. Default: a free one. */
  readonly port?: number;
  /** Whether to serve the web UI, on a free port or on this one. Default false. */
  readonly ui?: boolean | number;
  /** Registered before the server is handed out, also with a server that was running already. */
  readonly searchAttributes?: SearchAttributeTypes;
  /** Path of the Temporal CLI. Default: {@link findTemporalBinary}. */
  readonly binary?: string;
  /** How long the server may take to answer, in milliseconds, without the time to find a binary. Default 60,000. */
  readonly startTimeoutMs?: number;
  /** Receives a line of text whenever there is something to tell a waiting person. */
  readonly onProgress?: (line: string) => void;
  /** Where to look for the binary; the process's own environment by default. */
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
  /** False when the server was started elsewhere and is only used here. */
  readonly owned: boolean;
  /** What the server writes: warnings and errors. */
  readonly logFile: string;
  /** Resolves when the server that runs now has ended, whoever ended it; of a server that is not ours, never. */
  ended(): Promise<void>;
  /** Ends the server and waits for its end. Of a server that is not ours, or has ended: does nothing. */
  stop(): Promise<void>;
  /**
   * Ends the server with SIGKILL, as a crash would, and waits for its end.
   * @throws PerdureError `CONFLICT` when the server is not ours.
   */
  kill(): Promise<void>;
  /**
   * Starts the server again over the same file, at the same address; stops it first when it runs.
   * @throws PerdureError `CONFLICT` when the server is not ours; `SERVER_UNAVAILABLE` when it does not come up.
   */
  restart(): Promise<void>;
}

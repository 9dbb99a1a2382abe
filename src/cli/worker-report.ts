/** What a supervised worker tells `perdure dev`, over the channel between the two processes. */
export type WorkerReport =
  /** A source file of the agents. */
  | { type: 'file'; file: string }
  /** The worker polls its task queue. */
  | {
      type: 'ready';
      agents: string[];
      taskQueue: string;
      namespace: string;
      address: string;
      pid: number;
      version?: { deployment: string; buildId: string };
    };

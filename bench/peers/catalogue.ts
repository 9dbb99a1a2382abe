/** The compared peers. A peer is one entry here and one folder with a `peer.mjs` and its own pinned packages. */

/** Where a peer keeps its state. */
export type Store = 'temporal' | 'temporal-postgres' | 'postgres' | 'sqlite' | 'restate';

/** One row of the comparison. */
export interface PeerSpec {
  id: string;
  title: string;
  /** A folder here with packages of its own, or a file of this package. */
  at: { folder: string } | { file: string };
  /** The package in the folder whose version is shown. */
  package?: string;
  store: Store;
  variant?: string;
  /**
   * The number of worker processes, including the one that gets the commands. Default: 1. More are only for many
   * sessions.
   */
  workers?: number;
  /** The major version of Node that it needs, if ours is too old. */
  node?: number;
  /** Whether a call or a checkpoint holds the whole conversation up to it. */
  wholePrompts?: true;
  /** What it does with the conversation in each call, which explains its growth. */
  note: string;
}

/** The peers in the order in which they are shown. The floor is the second. */
export const PEERS: readonly PeerSpec[] = [
  {
    id: 'perdure',
    title: 'Perdure, `mutate` with `verify`',
    at: { file: 'perdure' },
    store: 'temporal',
    variant: 'mutate',
    note: 'each message once; two remote activities a turn',
  },
  {
    id: 'floor',
    title: 'bare Temporal workflow',
    at: { file: 'floor' },
    store: 'temporal',
    note: 'the floor: each message twice, as result and as next input; two remote activities a turn',
  },
  {
    id: 'perdure-read',
    title: 'Perdure, `read`',
    at: { file: 'perdure' },
    store: 'temporal',
    variant: 'read',
    note: 'each message once; the tool and the next model call are one activity',
  },
  {
    id: 'perdure-postgres',
    title: 'Perdure, `mutate`, server over PostgreSQL',
    at: { file: 'perdure' },
    store: 'temporal-postgres',
    variant: 'mutate',
    note: 'as the first row, on the stack of `docker-compose.yml`',
  },
  {
    id: 'floor-postgres',
    title: 'bare Temporal workflow, server over PostgreSQL',
    at: { file: 'floor' },
    store: 'temporal-postgres',
    note: 'as the second row, on the stack of `docker-compose.yml`',
  },
  {
    id: 'perdure-postgres-4',
    title: 'Perdure, `mutate`, server over PostgreSQL, four workers',
    at: { file: 'perdure' },
    store: 'temporal-postgres',
    variant: 'mutate',
    workers: 4,
    note: '',
  },
  {
    id: 'floor-postgres-4',
    title: 'bare Temporal workflow, server over PostgreSQL, four workers',
    at: { file: 'floor' },
    store: 'temporal-postgres',
    workers: 4,
    note: '',
  },
  {
    id: 'ai-sdk',
    title: '@temporalio/ai-sdk',
    at: { folder: 'ai-sdk' },
    package: '@temporalio/ai-sdk',
    store: 'temporal',
    node: 22,
    wholePrompts: true,
    note: 'the whole prompt in every model call; two remote activities a turn',
  },
  {
    id: 'langgraph-sqlite',
    title: 'LangGraph.js, SQLite saver',
    at: { folder: 'langgraph' },
    package: '@langchain/langgraph',
    store: 'sqlite',
    variant: 'sqlite',
    wholePrompts: true,
    note: 'the whole conversation in every checkpoint, two a turn; `durability: "sync"`',
  },
  {
    id: 'langgraph-postgres',
    title: 'LangGraph.js, PostgreSQL saver',
    at: { folder: 'langgraph' },
    package: '@langchain/langgraph',
    store: 'postgres',
    variant: 'postgres',
    wholePrompts: true,
    note: 'the whole conversation in every checkpoint, two a turn; `durability: "sync"`',
  },
  {
    id: 'dbos',
    title: 'DBOS',
    at: { folder: 'dbos' },
    package: '@dbos-inc/dbos-sdk',
    store: 'postgres',
    note: 'a row a step, each message once',
  },
  {
    id: 'restate',
    title: 'Restate',
    at: { folder: 'restate' },
    package: '@restatedev/restate-sdk',
    store: 'restate',
    node: 22,
    note: 'a journal entry a step, each message once',
  },
];

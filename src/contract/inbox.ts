/** What waits for a person, over all sessions. */
import type { Wait } from './state.ts';
import type { PendingCall } from './views.ts';

/** Filters of the inbox. */
export interface InboxOptions {
  agent?: string;
  tenant?: string;
  /** The most sessions to read, the newest first. Default: 200. `waiting` says how many wait. */
  limit?: number;
}

/** One way to answer an item. */
export interface InboxAnswer {
  /**
   * `approve`, `edit`, `reject`, `respond`, `landed`, `absent`, `failed`, `resume`, `raise`, `finish`, `cancel` or
   * `checkpoints`.
   */
  answer: string;
  /** What it would do, in a sentence. */
  does: string;
  /** The command of the CLI that does it. */
  command: string;
}

/** Something that waits for a person. */
export interface InboxItem {
  sessionId: string;
  agent: string | null;
  tenant: string | null;
  /** Sub-agents only: `root` is the session at the top of the tree, `path` the agents from there to this one. */
  root?: string;
  path?: string[];
  /**
   * `approval`: a call waits for a decision. `question`: the model asks a person. `unknown`: nobody knows whether a
   * call took effect. `stuck`: no worker has the tool, or no worker polls the task queue of the sub-agent. `budget`: a
   * cap is reached. `wait`: another reason, in `wait`. `unreadable`: the session cannot be read.
   */
  kind: 'approval' | 'question' | 'unknown' | 'stuck' | 'budget' | 'wait' | 'unreadable';
  /** Why it waits. */
  reason: string;
  /** ISO 8601: since when it waits. */
  since: string | null;
  /** ISO 8601: until when a decision is possible. */
  until: string | null;
  call: PendingCall | null;
  wait: Wait | null;
  answers: InboxAnswer[];
}

export interface Inbox {
  items: InboxItem[];
  /** `waiting`: how many sessions wait. `read`: how many of them were read. */
  waiting: number;
  read: number;
}

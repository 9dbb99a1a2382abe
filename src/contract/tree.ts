/** Sub-agents: sessions that calls of another session have started. A tree of sessions has one root. */
import * as z from 'zod/mini';
import type { JsonValue } from './json.ts';
import { type LazySchema, lazySchema } from './lazy-schema.ts';

/** The call that has started a session. */
export interface ParentLink {
  sessionId: string;
  callId: string;
  /** The session at the top of the tree. */
  root: string;
  /** How many sessions are above this one. */
  depth: number;
  /** The agents above this one, the root's first. */
  path: string[];
  /** The limit of its answer in bytes of JSON, if lower than usual. */
  resultLimit?: number;
}

const text = z.string().check(z.minLength(1));
const count = z.int().check(z.nonnegative());

export const parentSchema: LazySchema<ParentLink> = lazySchema(() =>
  z.object({
    sessionId: text,
    callId: text,
    root: text,
    depth: z.int().check(z.positive()),
    path: z.array(z.string()),
    resultLimit: z.exactOptional(count),
  }),
);

/** What a session and the sessions below it have used. `nanoUsd`: billionths of a US dollar. */
export interface TreeUsage {
  turns: number;
  toolCalls: number;
  inputTokens: number;
  outputTokens: number;
  nanoUsd: number;
  activeMs: number;
}

/** How a sub-agent's session has ended. */
export interface ChildEnd {
  /** `failed`: it was ended from outside, or cannot be read. */
  status: 'completed' | 'cancelled' | 'failed';
  /** Its answer, or why there is none. */
  output: JsonValue;
  usage?: TreeUsage | undefined;
}

/** A signal from a sub-agent's session to the session that has started it. */
export interface ChildDoneInput {
  /** The id of the sub-agent's session. */
  child: string;
  end: ChildEnd;
}

export const childDoneSchema: LazySchema<ChildDoneInput> = lazySchema(() =>
  z.object({
    child: text,
    end: z.object({
      status: z.enum(['completed', 'cancelled', 'failed']),
      output: z.json(),
      usage: z.optional(
        z.object({
          turns: count,
          toolCalls: count,
          inputTokens: count,
          outputTokens: count,
          nanoUsd: count,
          activeMs: count,
        }),
      ),
    }),
  }),
);

/** What an activity needs to start a sub-agent's session, or to look at it. */
export interface ChildStart {
  sessionId: string;
  agent: string;
  /** The task queue of its workers. Absent: the caller's own task queue. */
  taskQueue?: string;
  /** The pool of the tree. */
  pool?: string;
  /** Who has sent or edited messages of the sessions above. */
  authors?: string[];
  parent: ParentLink;
}

/** A sub-agent of a session. */
export interface Child {
  sessionId: string;
  agent: string;
  /** The call that has started it. */
  callId: string;
  /** What it was told last. Absent: nothing, so it runs. */
  told?: 'run' | 'pause' | 'pause_now' | 'cancel';
  /** How it has ended, without its answer. Absent: it is open. */
  end?: { status: ChildEnd['status']; at: string; usage?: TreeUsage };
  /** It works while its caller goes on. Absent: the call waits for it. */
  background?: Background;
}

/** What a session knows of a sub-agent in the background. */
export interface Background {
  /** The tool that has started it. */
  tool: string;
  /** What the end of its caller's task does to it. */
  atEnd: AtEnd;
  /** How often the session has looked at it without a report. */
  checks: number;
  /** The session must look at it now. */
  due?: true;
  /** Why the caller's model has stopped it. */
  stop?: string;
}

/** What a task does with a sub-agent in the background when the task ends: wait for it, or cancel it. */
export type AtEnd = 'wait' | 'cancel';

/**
 * A report on a sub-agent in the background, in a message that the session itself wrote. `left`: the sub-agent works
 * for the session that this one was forked from.
 */
export interface AgentReport {
  agent: string;
  session_id: string;
  call_id: string;
  status: ChildEnd['status'] | 'left';
}

/** The result of a call that has started a sub-agent in the background. */
export interface BackgroundStart {
  /** The id of the sub-agent's session. */
  session: string;
  agent: string;
  /** If it is not `running`, the sub-agent has ended already, and `answer` says how. */
  status: 'running' | ChildEnd['status'];
  answer?: JsonValue;
}

/** Input of `steer`: what some sub-agents are told. */
export interface SteerInput {
  sessions: string[];
  to: NonNullable<Child['told']>;
  by: string;
  reason: string;
}

/** Defaults: the levels of sub-agents in a tree, and the sub-agents of one session that may be open at a time. */
export const TREE_LIMIT = { depth: 5, open: 10 } as const;

/** How many characters of a tool's name and of a key are in the id of a sub-agent's session. */
const ID_PART = { tool: 16, key: 10 } as const;

/**
 * The id of the session that a call starts. It is made from the effect's key, not from the call's id: after a rewind,
 * an equal call finds the existing session.
 */
export function childId(sessionId: string, tool: string, idempotencyKey: string): string {
  return `${sessionId}/${tool.slice(0, ID_PART.tool)}.${idempotencyKey.slice(0, ID_PART.key)}`;
}

/** Whether a session is the sub-agent of a call. */
export function isChildOf(
  sessionId: string,
  { name, idempotencyKey }: { name: string; idempotencyKey: string },
): boolean {
  return sessionId.endsWith(childId('', name, idempotencyKey));
}

const BELOW = new RegExp(`^(/[^/]{1,${ID_PART.tool}}\\.[^/]{${ID_PART.key}})+$`);

/** Whether an id can be the id of a session below another session, at any level. */
export function isBelow(id: string, sessionId: string): boolean {
  return id.startsWith(sessionId) && BELOW.test(id.slice(sessionId.length));
}

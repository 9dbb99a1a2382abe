/** A tree of agents, read from its sessions. */
import { isPerdureError } from '../contract/errors.ts';
import type { SessionState, Wait } from '../contract/state.ts';
import type { Child, TreeUsage } from '../contract/tree.ts';
import type { PendingCall, SessionView } from '../contract/views.ts';
import { usageOf } from '../session/sub-agents.ts';

/** A session of a tree. */
export interface TreeNode {
  sessionId: string;
  agent: string;
  /** The agents from the root to this one. */
  path: string[];
  depth: number;
  /** The call of the session above that has started it; `null` for the root. */
  callId: string | null;
  /** What the session is doing, or how it has ended: `completed`, `cancelled`, `failed`. */
  status: string;
  /** What the session and the ended sessions below it have used. */
  usage: TreeUsage | null;
}

/** What waits for a person in a tree: a call, or a whole session. */
export interface TreeItem {
  /** The session that waits. To decide at the root, pass it, too: `root.decide({ ...call, sessionId }, …)`. */
  sessionId: string;
  path: string[];
  call: PendingCall | null;
  wait: Wait | null;
}

/** A session and all sessions below it. */
export interface Tree {
  /** Each session comes before those below it. */
  nodes: TreeNode[];
  /** Everything that waits for a person. */
  open: TreeItem[];
}

/** Reads a session and the sub-agents below it that are open, or that have ended in its present run. */
export function readTree(read: ReadSession, root: string): Promise<Tree> {
  return readNode(read, root, { path: [], depth: 0, callId: null });
}

type ReadSession = (sessionId: string) => Promise<{ state: SessionState; view: SessionView }>;

type Place = Pick<TreeNode, 'path' | 'depth' | 'callId'>;

async function readNode(read: ReadSession, sessionId: string, place: Place): Promise<Tree> {
  const { state, view } = await read(sessionId);
  const path = [...place.path, state.agent];
  const status = view.status.kind === 'active' ? view.phase : view.status.kind;
  const node: TreeNode = { ...place, sessionId, agent: state.agent, path, status, usage: usageOf(state) };
  const isOpen = view.status.kind === 'active';
  const calls: TreeItem[] = isOpen ? view.pending.map((call) => ({ sessionId, path, call, wait: null })) : [];
  const waits: TreeItem[] =
    isOpen && view.wait !== null ? [{ sessionId, path, call: null, wait: view.wait }] : [];
  const below = await Promise.all((state.children ?? []).map((child) => readChild(read, child, path)));
  return {
    nodes: [node, ...below.flatMap(({ nodes }) => nodes)],
    open: [...calls, ...waits, ...below.flatMap(({ open }) => open)],
  };
}

/** Reads a sub-agent. If it has ended, its end is on record with its caller. */
async function readChild(read: ReadSession, child: Child, above: string[]): Promise<Tree> {
  const { sessionId, agent, callId, end } = child;
  const place: Place = { path: above, depth: above.length, callId };
  const known = (status: string): Tree => ({
    nodes: [{ ...place, sessionId, agent, path: [...above, agent], status, usage: end?.usage ?? null }],
    open: [],
  });
  if (end !== undefined) return known(end.status);
  try {
    return await readNode(read, sessionId, place);
  } catch (error) {
    // The sub-agent's session is about to start.
    if (isPerdureError(error, 'SESSION_NOT_FOUND')) return known('starting');
    throw error;
  }
}

import { execFileSync } from 'node:child_process';
import { LabServer } from '../mcp/lab-server.ts';
import { CHANGED } from '../mcp/plan.ts';
import { polled } from '../patience.ts';
import type { Stage } from '../stage.ts';
import type { ToolKind } from '../story.ts';
import { type FaultPoint, gone, kill } from './point.ts';

/** Kinds whose calls may be repeated: the model is told about a failure. */
const TOLD: readonly ToolKind[] = ['read', 'idempotent'];

async function killed(pid: number): Promise<string> {
  process.kill(pid, 'SIGKILL');
  await polled(() => gone(pid), `MCP server ${pid} is still there`);
  return `MCP server ${pid} is gone, it had a call of every session`;
}

/**
 * Begins sessions whose tools are those of the server.
 *
 * @returns its process id, when it has misbehaved on a call of each
 */
async function struckBy(stage: Stage, server: LabServer): Promise<number> {
  await stage.startWorker({ env: server.env });
  await stage.begin({ agent: 'connected' });
  return server.struck();
}

/** SIGKILL of an MCP server in the calls of all sessions. */
export const mcpKill: FaultPoint = {
  name: 'mcp-kill',
  about: 'Tools are those of an MCP server. It is killed (SIGKILL) in a call, before its effect or after it.',
  steps: ['gap', 'landed'],
  fails: TOLD,
  oneTurn: true,
  inject: async (stage) => {
    const server = new LabServer(stage, { holdAt: stage.story.step as 'gap' | 'landed' });
    const pid = await struckBy(stage, server);
    const at = Date.now();
    const evidence = await killed(pid);
    server.mend();
    stage.strike(`${evidence}: ${stage.story.step}`, at);
  },
};

/** SIGKILL of an MCP server over HTTP in the calls of all sessions. Only the lab starts it again. */
export const mcpHttpKill: FaultPoint = {
  name: 'mcp-http-kill',
  about:
    'Tools are those of an MCP server over streamable HTTP. It is killed (SIGKILL) in a call, before its effect or after it, and comes back on its port.',
  steps: ['gap', 'landed'],
  fails: TOLD,
  oneTurn: true,
  inject: async (stage) => {
    const server = new LabServer(stage, { holdAt: stage.story.step as 'gap' | 'landed' });
    await server.serve();
    const pid = await struckBy(stage, server);
    const at = Date.now();
    const evidence = await killed(pid);
    server.mend();
    await server.serve();
    stage.strike(`${evidence}: ${stage.story.step}; ${server.pid} has its port`, at);
  },
};

/** SIGSTOP of an MCP server in the calls of all sessions. */
export const mcpFreeze: FaultPoint = {
  name: 'mcp-freeze',
  about:
    'Tools are those of an MCP server. It is stopped (SIGSTOP) in a call until the call times out, and another one takes its place.',
  steps: ['gap'],
  soakSteps: ['landed'],
  fails: TOLD,
  oneTurn: true,
  inject: async (stage) => {
    const limits = { timeout: '3000ms', settle: '6000ms' } as const;
    const server = new LabServer(stage, { holdAt: stage.story.step as 'gap' | 'landed', ...limits });
    const pid = await struckBy(stage, server);
    const at = Date.now();
    process.kill(pid, 'SIGSTOP');
    const state = execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
    if (!state.startsWith('T')) throw new Error(`MCP server ${pid} is ${state}`);
    server.mend();
    stage.strike(`MCP server ${pid} is ${state.trim()}, it has a call of every session`, at);
    return async () => {
      await polled(() => gone(pid), `MCP server ${pid} is still there`);
      for (const { session, task } of stage.actors) {
        const [call] = (await (await stage.ownerOf(session))?.calls())?.items ?? [];
        const timedOut = call?.dispatches[0]?.reason?.includes('timed out') === true;
        const isMutation = task.kind !== 'read' && task.kind !== 'idempotent';
        if (isMutation && !timedOut)
          throw new Error(`${session.id} did not time out: ${JSON.stringify(call)}`);
      }
    };
  },
};

/** An MCP server whose first answers are lies. */
export const mcpLies: FaultPoint = {
  name: 'mcp-lies',
  about:
    'Tools are those of an MCP server, whose answers are confirmed by `verify`. It says that a call is done and has done nothing (gap), or that it has failed and has done it (landed).',
  steps: ['gap', 'landed'],
  // For the other kinds, nobody can tell.
  kinds: () => ['mutate', 'global'],
  oneTurn: true,
  inject: async (stage) => {
    const lie = stage.story.step === 'gap' ? 'done' : 'not-done';
    const server = new LabServer(stage, { lie });
    const pid = await struckBy(stage, server);
    stage.strike(`MCP server ${pid} has told every session of its first call: ${lie}`);
  },
};

/** An MCP server whose tools change from one call to the next. */
export const mcpChange: FaultPoint = {
  name: 'mcp-change',
  about:
    'Tools are those of an MCP server. It is killed (SIGKILL) in a call, and comes back with other tools and schemas, which the next worker takes.',
  anyService: true,
  steps: ['landed'],
  fails: TOLD,
  oneTurn: true,
  inject: async (stage) => {
    const server = new LabServer(stage, { holdAt: 'landed' });
    const worker = await stage.startWorker({ env: server.env });
    await stage.begin({ agent: 'connected' });
    const digests = new Map<string, string | null>();
    await stage.until(({ manifestDigest }, { task }) => {
      digests.set(task.session, manifestDigest);
      return manifestDigest !== null;
    });
    const pid = await server.struck();
    const at = Date.now();
    const evidence = await killed(pid);
    server.say(CHANGED);
    server.mend();
    // This worker has the tools that the server had when the worker started.
    await stage.until(({ phase }) => phase === 'idle', { helped: true });
    await kill(worker, 'all');
    stage.more();
    await stage.startWorker({ env: server.env });
    await stage.until(({ manifestDigest }, { task }) => manifestDigest !== digests.get(task.session), {
      helped: true,
    });
    stage.strike(`${evidence}, and every session has another manifest than before`, at);
  },
};

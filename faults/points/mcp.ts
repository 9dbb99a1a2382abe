import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type AgentPlan, CHANGED, GO, markOf } from '../mcp/plan.ts';
import { polled } from '../patience.ts';
import type { Stage } from '../stage.ts';
import { callTags, type ToolKind } from '../story.ts';
import { type FaultPoint, gone, kill } from './point.ts';

const PROGRAM = fileURLToPath(new URL('../mcp/server.ts', import.meta.url));
/** The model is told of what may be repeated. */
const TOLD: readonly ToolKind[] = ['read', 'idempotent'];

/** The MCP server of a run, which its workers start. */
class LabServer {
  readonly #stage: Stage;
  readonly #plan: AgentPlan;

  constructor(stage: Stage, plan: Partial<AgentPlan> = {}) {
    this.#stage = stage;
    const dir = stage.lane.file(`mcp-${stage.harness.taskQueue}`);
    mkdirSync(dir);
    this.#plan = {
      program: PROGRAM,
      payments: `http://${stage.lane.payments}`,
      dir,
      timeout: '30000ms',
      settle: '300ms',
      ...plan,
    };
    stage.onClose(async () => {
      for (const pid of this.#pids()) if (!gone(pid)) process.kill(pid, 'SIGKILL');
    });
  }

  get env(): Record<string, string> {
    return { LAB_MCP: JSON.stringify(this.#plan) };
  }

  /** Resolves when the server has done wrong on a call of every session. @returns its process id */
  async struck(): Promise<number> {
    await polled(() => this.#pids().length === this.#marks().length, 'a call never came to the MCP server');
    const pids = new Set(this.#pids());
    const [pid] = pids;
    if (pid === undefined || pids.size > 1) throw new Error(`the calls are in ${pids.size} servers`);
    return pid;
  }

  /** From now on it does nothing wrong. */
  mend(): void {
    this.say(GO);
  }

  say(word: typeof GO | typeof CHANGED): void {
    writeFileSync(`${this.#plan.dir}/${word}`, '');
  }

  #marks(): string[] {
    const tags = this.#stage.actors.flatMap(({ task }) => callTags(task, 1));
    return [...new Set(tags)].map((tag) => `${this.#plan.dir}/${markOf(tag)}`);
  }

  #pids(): number[] {
    return this.#marks()
      .filter((file) => existsSync(file))
      .map((file) => Number(readFileSync(file, 'utf8')));
  }
}

async function killed(pid: number): Promise<string> {
  process.kill(pid, 'SIGKILL');
  await polled(() => gone(pid), `MCP server ${pid} is still there`);
  return `MCP server ${pid} is gone, it had a call of every session`;
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
    await stage.startWorker({ env: server.env });
    await stage.begin({ agent: 'connected' });
    const pid = await server.struck();
    const at = Date.now();
    const evidence = await killed(pid);
    server.mend();
    stage.strike(`${evidence}: ${stage.story.step}`, at);
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
    await stage.startWorker({ env: server.env });
    await stage.begin({ agent: 'connected' });
    const pid = await server.struck();
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
  // Nobody can tell of the others.
  kinds: () => ['mutate', 'global'],
  oneTurn: true,
  inject: async (stage) => {
    const lie = stage.story.step === 'gap' ? 'done' : 'not-done';
    const server = new LabServer(stage, { lie });
    await stage.startWorker({ env: server.env });
    await stage.begin({ agent: 'connected' });
    const pid = await server.struck();
    stage.strike(`MCP server ${pid} has told every session of its first call: ${lie}`);
  },
};

/** An MCP server that is another one from one call to the next. */
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
    // The tools of this worker are those that the server had when it started.
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

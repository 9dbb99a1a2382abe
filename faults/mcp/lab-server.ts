import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { polled } from '../patience.ts';
import { gone } from '../points/point.ts';
import { freeSmallPort, Service } from '../stack/process.ts';
import type { Stage } from '../stage.ts';
import { callTags } from '../story.ts';
import { type AgentPlan, type CHANGED, GO, markOf, urlOf } from './plan.ts';

const PROGRAM = fileURLToPath(new URL('./server.ts', import.meta.url));

/** The MCP server of a run. Its workers start it, or the lab serves it over HTTP. */
export class LabServer {
  readonly #stage: Stage;
  #plan: AgentPlan;
  #service: Service | null = null;

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
      await this.#service?.end('SIGKILL');
      for (const pid of this.#pids()) if (!gone(pid)) process.kill(pid, 'SIGKILL');
    });
  }

  get env(): Record<string, string> {
    return { LAB_MCP: JSON.stringify(this.#plan) };
  }

  /** The process that serves over HTTP. */
  get pid(): number {
    return this.#service?.pid ?? 0;
  }

  /** Serves over HTTP. Each call starts it on the same port. */
  async serve(): Promise<void> {
    const port = this.#plan.port ?? (await freeSmallPort());
    this.#plan = { ...this.#plan, port };
    this.#service ??= new Service(
      [process.execPath, '--import', 'tsx', PROGRAM, JSON.stringify(this.#plan)],
      `${this.#plan.dir}/server.log`,
    );
    await this.#service.start(async () => void (await fetch(urlOf(port))));
  }

  /** Resolves when the server has misbehaved on a call of every session. @returns its process id */
  async struck(): Promise<number> {
    await polled(() => this.#pids().length === this.#marks().length, 'a call never came to the MCP server');
    const pids = new Set(this.#pids());
    const [pid] = pids;
    if (pid === undefined || pids.size > 1) throw new Error(`the calls are in ${pids.size} servers`);
    return pid;
  }

  /** From now on the server behaves. */
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

/** The workers of a run as one: each point of the lab strikes those that have what it is about. */
import type { WorkerProcess } from 'perdure/testing';

/** How often those that were spared are let go, in milliseconds. */
const LET_GO_MS = 20;

/** One worker process or several on one task queue, held at the same breakpoints. */
export class Crew {
  readonly #members: readonly WorkerProcess[];
  readonly #points: readonly string[];
  /** By point, the visit that each member was asked for and that nobody has been told of. */
  readonly #asked = new Map<string, Map<WorkerProcess, Promise<WorkerProcess>>>();
  /** Those that were seen at a breakpoint and not let go since. */
  readonly #holding = new Set<WorkerProcess>();
  readonly #crashed = new Set<WorkerProcess>();
  #frozen: readonly WorkerProcess[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(members: readonly WorkerProcess[], points: readonly string[]) {
    this.#members = members;
    this.#points = points;
  }

  /** The processes that are there and not frozen. */
  get pids(): number[] {
    return this.#living().map(({ pid }) => pid);
  }

  /** Resolves when one more visit of a breakpoint has happened in any of them. */
  async reached(point: string): Promise<void> {
    const asked = this.#asked.get(point) ?? new Map<WorkerProcess, Promise<WorkerProcess>>();
    this.#asked.set(point, asked);
    for (const member of this.#living()) {
      if (asked.has(member)) continue;
      const visit = member.reached(point).then(() => member);
      // One that is struck never comes.
      visit.catch(() => {});
      asked.set(member, visit);
    }
    const member = await Promise.any(asked.values());
    asked.delete(member);
    this.#holding.add(member);
  }

  /** Lets everything that is held at a breakpoint, or at any, go on, in the frozen ones when they wake. */
  release(point?: string): void {
    const points = point === undefined ? this.#points : [point];
    for (const member of this.#members)
      if (!this.#crashed.has(member)) for (const each of points) member.release(each);
    this.#holding.clear();
  }

  /** SIGKILL of those that are held, or of all where none is; returns who is gone. The others are held no more. */
  async crashHolders(): Promise<number[]> {
    const struck = this.#struck();
    await this.#kill(struck);
    this.#letOthersGo(struck);
    return struck.map(({ pid }) => pid);
  }

  /** SIGKILL of all; returns who is gone. */
  async crash(): Promise<number[]> {
    clearInterval(this.#timer);
    const struck = this.#members.filter((member) => !this.#crashed.has(member));
    await this.#kill(struck);
    return struck.map(({ pid }) => pid);
  }

  /** SIGSTOP of those that are held, or of all where none is; returns who is still. */
  freeze(): number[] {
    this.#frozen = this.#struck();
    for (const member of this.#frozen) member.freeze();
    this.#letOthersGo(this.#frozen);
    return this.#frozen.map(({ pid }) => pid);
  }

  /** SIGCONT of those that were frozen, and SIGTERM after it: they end their calls, and go. */
  async wakeAndStop(): Promise<void> {
    for (const member of this.#frozen) member.wake();
    await this.#stop(this.#frozen);
    this.#frozen = [];
  }

  /** SIGTERM of all. */
  async stop(): Promise<void> {
    await this.#stop(this.#living());
  }

  #living(): WorkerProcess[] {
    return this.#members.filter((member) => !this.#crashed.has(member) && !this.#frozen.includes(member));
  }

  #struck(): WorkerProcess[] {
    const living = this.#living();
    const holding = living.filter((member) => this.#holding.has(member));
    return holding.length > 0 ? holding : living;
  }

  async #kill(members: readonly WorkerProcess[]): Promise<void> {
    for (const member of members) this.#crashed.add(member);
    await Promise.all(members.map((member) => member.crash()));
  }

  async #stop(members: readonly WorkerProcess[]): Promise<void> {
    await Promise.all(members.map((member) => member.stop()));
    for (const member of members) this.#crashed.add(member);
  }

  #letOthersGo(struck: readonly WorkerProcess[]): void {
    const others = this.#living().filter((member) => !struck.includes(member));
    if (others.length === 0) return;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => {
      for (const member of others)
        if (!this.#crashed.has(member)) for (const point of this.#points) member.release(point);
    }, LET_GO_MS);
  }
}

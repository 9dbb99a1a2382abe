/** Treats the workers of a run as one. Each fault point strikes the workers that hold what the fault is about. */
import type { WorkerProcess } from 'perdure/testing';

/** How often the workers that were spared are released, in milliseconds. */
const LET_GO_MS = 20;

/** One worker process or several on one task queue, held at the same breakpoints. */
export class Crew {
  readonly #members: readonly WorkerProcess[];
  readonly #points: readonly string[];
  /** By breakpoint: the next visit of each member that no caller has been told about. */
  readonly #asked = new Map<string, Map<WorkerProcess, Promise<WorkerProcess>>>();
  /** Members that were seen at a breakpoint and not released since. */
  readonly #holding = new Set<WorkerProcess>();
  readonly #crashed = new Set<WorkerProcess>();
  #frozen: readonly WorkerProcess[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(members: readonly WorkerProcess[], points: readonly string[]) {
    this.#members = members;
    this.#points = points;
  }

  /** The ids of processes that run and are not frozen. */
  get pids(): number[] {
    return this.#living().map(({ pid }) => pid);
  }

  /** Resolves when any member has visited the breakpoint once more. */
  async reached(point: string): Promise<void> {
    const asked = this.#asked.get(point) ?? new Map<WorkerProcess, Promise<WorkerProcess>>();
    this.#asked.set(point, asked);
    for (const member of this.#living()) {
      if (asked.has(member)) continue;
      const visit = member.reached(point).then(() => member);
      // A member that is struck never arrives.
      visit.catch(() => {});
      asked.set(member, visit);
    }
    const member = await Promise.any(asked.values());
    asked.delete(member);
    this.#holding.add(member);
  }

  /** Releases everything that is held at one breakpoint, or at any. Frozen members continue when they wake. */
  release(point?: string): void {
    const points = point === undefined ? this.#points : [point];
    for (const member of this.#members)
      if (!this.#crashed.has(member)) for (const each of points) member.release(each);
    this.#holding.clear();
  }

  /**
   * Sends SIGKILL to the members that are held, or to all if none is. Returns their ids. The others are not held any
   * more.
   */
  async crashHolders(): Promise<number[]> {
    const struck = this.#struck();
    await this.#kill(struck);
    this.#letOthersGo(struck);
    return struck.map(({ pid }) => pid);
  }

  /** Sends SIGKILL to all members. Returns their ids. */
  async crash(): Promise<number[]> {
    clearInterval(this.#timer);
    const struck = this.#members.filter((member) => !this.#crashed.has(member));
    await this.#kill(struck);
    return struck.map(({ pid }) => pid);
  }

  /** Sends SIGSTOP to the members that are held, or to all if none is. Returns their ids. */
  freeze(): number[] {
    this.#frozen = this.#struck();
    for (const member of this.#frozen) member.freeze();
    this.#letOthersGo(this.#frozen);
    return this.#frozen.map(({ pid }) => pid);
  }

  /** Sends SIGCONT and then SIGTERM to the frozen members: they finish their calls and exit. */
  async wakeAndStop(): Promise<void> {
    for (const member of this.#frozen) member.wake();
    await this.#stop(this.#frozen);
    this.#frozen = [];
  }

  /** Sends SIGTERM to all members. */
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

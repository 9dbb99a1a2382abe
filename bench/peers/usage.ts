/** The resource usage of processes, from /proc: Linux only. */
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** Milliseconds of a clock tick: the kernel reports hundredths of a second to user space, whatever its own clock. */
const TICK_MS = 10;

/** Whether this system reports it. */
export const canTell: boolean = process.platform === 'linux';

interface Stat {
  pid: number;
  parent: number;
  /** Its own time and that of the children it has waited for. */
  cpuMs: number;
}

function statOf(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, in parentheses, may hold anything.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return { pid, parent: Number(fields[1]), cpuMs: ticks * TICK_MS };
  } catch {
    return undefined;
  }
}

function allStats(): Stat[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => statOf(Number(name)) ?? []);
}

/** The processes and all their descendants. */
function treeOf(roots: readonly number[], all: readonly Stat[] = allStats()): Stat[] {
  const found = new Map(all.filter(({ pid }) => roots.includes(pid)).map((stat) => [stat.pid, stat]));
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const stat of all) if (found.has(stat.parent)) found.set(stat.pid, stat);
  }
  return [...found.values()];
}

/** CPU time that they have used so far, in milliseconds. */
export function cpuMs(roots: readonly number[]): number {
  return canTell ? treeOf(roots).reduce((sum, stat) => sum + stat.cpuMs, 0) : Number.NaN;
}

/** The time that the host of this virtual machine gave to others, in milliseconds. */
function stolenMs(): number {
  const [, ...ticks] = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]?.split(/\s+/) ?? [];
  return Number(ticks[7] ?? 0) * TICK_MS;
}

/**
 * Starts to measure how much processor time is used by others than this process and its descendants.
 *
 * @returns a function that returns their share of the whole machine since then (0 to 1), or `undefined` if the system
 * does not report it.
 */
export function othersShare(): () => number | undefined {
  if (!canTell) return () => undefined;
  const sum = (stats: readonly Stat[]): number => stats.reduce((total, { cpuMs }) => total + cpuMs, 0);
  const look = (): { at: number; ms: number } => {
    const all = allStats();
    return { at: performance.now(), ms: sum(all) - sum(treeOf([process.pid], all)) + stolenMs() };
  };
  const before = look();
  return () => {
    const { at, ms } = look();
    return Math.max(0, ms - before.ms) / ((at - before.at) * availableParallelism());
  };
}

/**
 * Resident bytes. Memory that several of the processes share counts once (proportional set size). For a single process
 * everything counts, because it would need the memory that it shares with other trees without them, too.
 */
export function residentBytes(roots: readonly number[]): number {
  if (!canTell) return Number.NaN;
  const tree = treeOf(roots);
  const size = tree.length === 1 ? /^Rss:\s+(\d+) kB/m : /^Pss:\s+(\d+) kB/m;
  return tree.reduce((sum, { pid }) => {
    try {
      const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
      return sum + Number(size.exec(text)?.[1] ?? 0) * 1_024;
    } catch {
      return sum;
    }
  }, 0);
}

/** What processes use, read from /proc: Linux only. */
import { readdirSync, readFileSync } from 'node:fs';

/** Milliseconds of a clock tick: the kernel tells user space in hundredths of a second, whatever its own clock. */
const TICK_MS = 10;

/** Whether this system can tell. */
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

/** The processes and all that they have started. */
function treeOf(roots: readonly number[]): Stat[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => statOf(Number(name)) ?? []);
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

/** Resident bytes; what processes share counts once (proportional set size). */
export function residentBytes(roots: readonly number[]): number {
  if (!canTell) return Number.NaN;
  return treeOf(roots).reduce((sum, { pid }) => {
    try {
      const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
      return sum + Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1_024;
    } catch {
      return sum;
    }
  }, 0);
}

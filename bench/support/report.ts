/** The lines of a measurement, with their verdicts, their table and their file. */
import { mkdir, writeFile } from 'node:fs/promises';
import { fileTime } from '../../faults/table.ts';
import type { Machine } from './machine.ts';

/** Folders of result files: of runs that the docs may show, and of all others. */
export const KEPT = 'bench/results';
export const SCRATCH = '.perdure/bench';

/** One figure, with its target. */
export interface Line {
  measure: string;
  what: string;
  /** The peer, in a comparison of several. */
  peer?: string;
  /** NaN if it could not be measured: then a target is missed. */
  value: number;
  unit: string;
  /** Absent when the figure is for information. */
  target?: { atMost: number } | { atLeast: number };
  /** The medians that a ratio is made of, in the unit that the key names. */
  of?: Record<string, number>;
  /** All samples of these medians, in the order of their rounds. NaN: a failed round. */
  samples?: Record<string, number[]>;
  note?: string;
  /** The share of the machine's processor time that others used during the measure (0 to 1), if it is known. */
  others?: number;
}

/** `met`, `MISSED`, or an empty text if there is no target. */
export function verdict({ value, target }: Line): 'met' | 'MISSED' | '' {
  if (target === undefined) return '';
  const met = 'atMost' in target ? value <= target.atMost : value >= target.atLeast;
  return met ? 'met' : 'MISSED';
}

/** The lines as a table for people. */
export function table(lines: readonly Line[]): string {
  const rows = lines.map((line) => [
    line.measure,
    line.peer === undefined ? line.what : `${line.peer}: ${line.what}`,
    `${shown(line.value)} ${line.unit}`.trimEnd(),
    targetText(line.target),
    verdict(line),
    Object.entries(line.of ?? {})
      .map(([name, value]) => `${name} ${shown(value)}`)
      .join(', ') || (line.unit === '' ? (line.note ?? '') : ''),
  ]);
  const all = [['measure', 'what', 'value', 'target', 'verdict', 'of'], ...rows];
  const widths = (all[0] ?? []).map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function targetText(target: Line['target']): string {
  if (target === undefined) return '';
  return 'atMost' in target ? `<= ${target.atMost}` : `>= ${target.atLeast}`;
}

function shown(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) || Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en');
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);
}

/** Writes a new result file into the folder and returns its path. `what` is part of its name. */
export async function writeResults(
  folder: string,
  what: string,
  machine: Machine,
  lines: readonly Line[],
): Promise<string> {
  const at = new Date().toISOString();
  const path = `${folder}/${fileTime(at)}-${what}.json`;
  await mkdir(folder, { recursive: true });
  const results = lines.map((line) => ({ ...line, verdict: verdict(line) || undefined }));
  const text = JSON.stringify({ at, machine, results }, (_, value: unknown) =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value,
  );
  // Never overwrite another result.
  await writeFile(path, `${JSON.stringify(JSON.parse(text), null, 1)}\n`, { flag: 'wx' });
  return path;
}

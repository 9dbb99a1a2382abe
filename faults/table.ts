/** The results of the runs by fault and tool kind, for people, for programs and for the docs. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { FaultPoint } from './points/point.ts';
import type { RunResult } from './run.ts';
import { type Keys, KIND_TEXT, KINDS, type StackName, type ToolKind } from './story.ts';

/** One line: a fault, a kind of tool, a service. */
export interface TableRow {
  readonly point: string;
  readonly kind: ToolKind;
  readonly keys: Keys;
  /** Stories that had a session with such a tool. */
  readonly runs: number;
  /** Sessions that the fault struck. */
  readonly landed: number;
  readonly duplicates: number;
  readonly losses: number;
  /** Duplicates by a request between the last fence and the socket; repeats of a tool that says it may be repeated. */
  readonly gap: number;
  readonly repeats: number;
  readonly toPerson: number;
  /** Milliseconds. */
  readonly medianGoOnMs: number | null;
}

/** Sums up the runs, in the order of the points. */
export function summarize(points: readonly FaultPoint[], results: readonly RunResult[]): TableRow[] {
  return points.flatMap(({ name }) =>
    KINDS.flatMap((kind) =>
      (['honoured', 'ignored'] as const).flatMap((keys) => {
        const outcomes = results
          .filter(({ story }) => story.point === name && story.keys === keys)
          .flatMap((result) => result.outcomes.filter((outcome) => outcome.kind === kind));
        if (outcomes.length === 0) return [];
        const sum = (read: (outcome: (typeof outcomes)[number]) => number): number =>
          outcomes.reduce((total, outcome) => total + read(outcome), 0);
        return {
          point: name,
          kind,
          keys,
          runs: outcomes.length,
          landed: sum(({ landed }) => landed),
          duplicates: sum(({ duplicates }) => duplicates),
          losses: sum(({ losses }) => losses),
          gap: sum(({ gap }) => gap),
          repeats: sum(({ repeats }) => repeats),
          toPerson: sum(({ toPerson }) => toPerson),
          medianGoOnMs: median(outcomes.flatMap(({ goOnMs }) => goOnMs)),
        };
      }),
    ),
  );
}

const HEAD = [
  'fault',
  'tool',
  'keys',
  'runs',
  'struck',
  'duplicates',
  'losses',
  'in the gap',
  'repeats',
  'to a person',
  'goes on after',
];

/** The cells of the table, with its head. */
function cells(rows: readonly TableRow[]): string[][] {
  return [
    HEAD,
    ...rows.map((row) => [
      row.point,
      KIND_TEXT[row.kind],
      row.keys,
      ...[row.runs, row.landed, row.duplicates, row.losses, row.gap, row.repeats, row.toPerson].map(String),
      row.medianGoOnMs === null ? '' : `${(row.medianGoOnMs / 1_000).toFixed(1)} s`,
    ]),
  ];
}

/** What the columns count, for readers of the terminal. */
const LEGEND = [
  'runs: stories with such a session; keys: whether the service honours idempotency keys or ignores them',
  'struck: sessions that the fault was shown to have struck; of a global effect two sessions share it',
  'duplicates, losses: broken guarantees, a loss also what was given up; in the gap, repeats: second effects that docs/guarantees.md allows',
  'to a person: sessions that asked for one; goes on after: median from the beginning of the fault to rest, as busy as this machine was',
];

/** The table for a terminal, with its legend. */
export function table(rows: readonly TableRow[]): string {
  const all = cells(rows);
  const widths = HEAD.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const lines = all.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return [...lines, '', ...LEGEND].join('\n');
}

/** The result file of a run that starts now, below the working directory. */
export function resultPath(stack: StackName): string {
  return `.perdure/faults/${fileTime(new Date().toISOString())}-${stack}.json`;
}

/** A time as part of a file name, to the millisecond. Later times sort later. */
export function fileTime(iso: string): string {
  return iso.replaceAll(':', '-');
}

/** Writes the result file, over its earlier content of this run. It has the observations of failed runs. */
export async function writeResults(
  path: string,
  run: { seed: number; seconds: number; results: readonly RunResult[]; rows: readonly TableRow[] },
): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const results = run.results.map(({ observed, ...result }) =>
    result.breaches.length > 0 ? { ...result, observed } : result,
  );
  await writeFile(path, `${JSON.stringify({ ...run, results }, null, 1)}\n`);
}

function median(numbers: readonly number[]): number | null {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? null;
}

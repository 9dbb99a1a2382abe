/** The summaries of soaks, which take too long to be run by everybody: kept beside the lab, and named in the docs. */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import type { RunResult } from './run.ts';
import type { TableRow } from './table.ts';

const FOLDER = 'faults/results';

/** What a soak came to. */
export interface SoakSummary {
  readonly date: string;
  readonly command: string;
  readonly node: string;
  readonly cpu: string;
  readonly seconds: number;
  readonly runs: number;
  /** Runs that the plan had; more than `runs` where somebody stopped it. */
  readonly planned: number;
  readonly struck: number;
  readonly failed: readonly { readonly story: RunResult['story']; readonly breaches: readonly string[] }[];
  readonly rows: readonly TableRow[];
}

/** Writes the summary of a soak and returns its path. */
export async function keepSoak(run: {
  command: string;
  seconds: number;
  planned: number;
  results: readonly RunResult[];
  rows: readonly TableRow[];
}): Promise<string> {
  const { results, rows, ...rest } = run;
  const date = new Date().toISOString();
  const summary: SoakSummary = {
    date,
    ...rest,
    seconds: Math.round(run.seconds),
    node: process.version,
    cpu: `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`,
    runs: results.length,
    struck: rows.reduce((sum, { landed }) => sum + landed, 0),
    failed: results
      .filter(({ breaches }) => breaches.length > 0)
      .map(({ story, breaches }) => ({
        story,
        breaches: breaches.map(({ breach, text }) => `${breach}: ${text}`),
      })),
    rows,
  };
  await mkdir(FOLDER, { recursive: true });
  const path = `${FOLDER}/${date.slice(0, 10)}-soak.json`;
  await writeFile(path, `${JSON.stringify(summary, null, 1)}\n`);
  return path;
}

/** The newest soak that was kept, or `null`. */
export async function lastSoak(): Promise<SoakSummary | null> {
  if (!existsSync(FOLDER)) return null;
  const name = (await readdir(FOLDER))
    .filter((each) => each.endsWith('-soak.json'))
    .sort()
    .at(-1);
  return name === undefined ? null : (JSON.parse(await readFile(`${FOLDER}/${name}`, 'utf8')) as SoakSummary);
}

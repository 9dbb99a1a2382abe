/**
 * The summaries of soaks. Soaks take too long for everybody to run, so their summaries are stored beside the lab and
 * named in the docs.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import type { RunResult } from './run.ts';
import { STACKS, type StackName } from './story.ts';
import { fileTime, type TableRow } from './table.ts';

const FOLDER = 'faults/results';

/** The summary of a soak. */
export interface SoakSummary {
  readonly date: string;
  readonly stack: StackName;
  readonly command: string;
  readonly node: string;
  readonly cpu: string;
  readonly seconds: number;
  readonly runs: number;
  /** Runs in the plan. More than `runs` if somebody stopped the soak. */
  readonly planned: number;
  readonly struck: number;
  readonly failed: readonly { readonly story: RunResult['story']; readonly breaches: readonly string[] }[];
  readonly rows: readonly TableRow[];
}

/** Writes the summary of a soak beside the others and returns its path. */
export async function keepSoak(
  run: Pick<SoakSummary, 'stack' | 'command' | 'seconds' | 'planned' | 'rows'> & {
    readonly results: readonly RunResult[];
  },
  folder: string = FOLDER,
): Promise<string> {
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
        // The stack of an error names files of this machine.
        breaches: breaches.map(({ breach, text }) => `${breach}: ${text.split('\n')[0]}`),
      })),
    rows,
  };
  await mkdir(folder, { recursive: true });
  const path = `${folder}/${fileTime(date)}-${run.stack}-soak.json`;
  // Never overwrite another summary.
  await writeFile(path, `${JSON.stringify(summary, null, 1)}\n`, { flag: 'wx' });
  return path;
}

/** The newest stored soak of each stack. */
export async function lastSoaks(folder: string = FOLDER): Promise<SoakSummary[]> {
  if (!existsSync(folder)) return [];
  const names = (await readdir(folder)).sort();
  const last = STACKS.flatMap(
    (stack) => names.findLast((each) => each.endsWith(`-${stack}-soak.json`)) ?? [],
  );
  return Promise.all(
    last.map(async (name) => JSON.parse(await readFile(`${folder}/${name}`, 'utf8')) as SoakSummary),
  );
}

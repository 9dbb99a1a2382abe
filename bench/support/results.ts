/** Reads the stored result files, from which the docs are made. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Machine } from './machine.ts';
import { KEPT, type Line } from './report.ts';

/** A stored run. */
export interface Results {
  at: string;
  machine: Machine;
  results: Line[];
}

/** The newest kept run that has lines of a measure. @throws Error when there is none. */
export async function newestResults(measure: string): Promise<Results> {
  const [found] = await keptResults(measure);
  if (found === undefined) throw new Error(`no run of ${measure} is kept in ${KEPT}`);
  return found;
}

/** All kept runs that have lines of a measure, the newest first. */
export async function keptResults(measure: string): Promise<Results[]> {
  const names = (await readdir(KEPT).catch(() => [])).filter((name) => name.endsWith('.json'));
  const all = await Promise.all(
    names.map(async (name) => readResults(await readFile(join(KEPT, name), 'utf8'))),
  );
  return all
    .filter(({ results }) => results.some((line) => line.measure === measure))
    .sort((a, b) => b.at.localeCompare(a.at));
}

/** A result file's text; JSON writes NaN as `null`. */
export function readResults(text: string): Results {
  const { results, ...run } = JSON.parse(text) as Results;
  return { ...run, results: results.map((line) => ({ ...line, value: line.value ?? Number.NaN })) };
}

/** Finds a peer's line. */
export function lineOf({ results }: Results, peer: string, what: string): Line | undefined {
  return results.find((line) => line.measure === 'peers' && line.peer === peer && line.what === what);
}

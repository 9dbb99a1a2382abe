/** The result files that are kept, as the docs are made from them. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Machine } from './machine.ts';
import type { Line } from './report.ts';

/** A run as it was written down. */
export interface Results {
  at: string;
  machine: Machine;
  results: Line[];
}

const FOLDER = 'bench/results';

/** The newest kept run that has lines of a measure. @throws Error when there is none. */
export async function newestResults(measure: string): Promise<Results> {
  const [found] = await keptResults(measure);
  if (found === undefined) throw new Error(`no run of ${measure} is kept in ${FOLDER}`);
  return found;
}

/** All kept runs that have lines of a measure, the newest first. */
export async function keptResults(measure: string): Promise<Results[]> {
  const names = (await readdir(FOLDER).catch(() => [])).filter((name) => name.endsWith('.json'));
  const all = await Promise.all(
    names.map(async (name) => JSON.parse(await readFile(join(FOLDER, name), 'utf8')) as Results),
  );
  return all
    .filter(({ results }) => results.some((line) => line.measure === measure))
    .sort((a, b) => b.at.localeCompare(a.at));
}

/** Finds a peer's line. */
export function lineOf({ results }: Results, peer: string, what: string): Line | undefined {
  return results.find((line) => line.measure === 'peers' && line.peer === peer && line.what === what);
}

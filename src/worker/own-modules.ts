import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** From the sources, under tsx or vitest; else from the built package, whose modules share files. */
const FROM_SOURCES = import.meta.url.endsWith('.ts');

/** The directory that this package's modules lie in. */
export const OWN: string = join(
  dirname(createRequire(import.meta.url).resolve('perdure/package.json')),
  FROM_SOURCES ? 'src' : 'dist',
);

/** The file of a module that is run by itself, from its place in the sources: `cli/main`. */
export function ownModule(place: string, directory: string = OWN): string {
  return join(directory, `${place}${FROM_SOURCES ? '.ts' : '.js'}`);
}

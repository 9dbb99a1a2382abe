import { extname, resolve } from 'node:path';

/** The directory that this package's modules lie in: one up from this room, and from the chunks of a build. */
export const OWN: string = resolve(import.meta.dirname, '..');

/** The file of a module that runs as a process, by its place in the sources: `cli/main`. */
export function ownModule(place: string, directory: string = OWN): string {
  return resolve(directory, `${place}${extname(import.meta.filename)}`);
}

/** Imports a user's module, JavaScript or TypeScript. */
import { createRequire } from 'node:module';
import { sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { register as registerCommonJs } from 'tsx/cjs/api';
import { register } from 'tsx/esm/api';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import { OWN } from '../worker/own-modules.ts';

/** What a module exports. */
export interface ImportedModule {
  /** The exports by name, with the properties of the default export. */
  values: Record<string, unknown>;
  /** The names of the exports, for messages. */
  names: string[];
}

/**
 * Imports a module.
 *
 * @param onFile - called with each of the user's files in the module, also when it fails.
 * @throws PerdureError `INVALID_DEFINITION` when it cannot be loaded.
 */
export async function importModule(path: string, onFile: (file: string) => void): Promise<ImportedModule> {
  const tell = (file: string): void => {
    if (!file.startsWith(OWN + sep) && !file.includes(`${sep}node_modules${sep}`)) onFile(file);
  };
  onFile(path);
  // Both loaders, because without `"type": "module"` a directory is CommonJS, also for TypeScript.
  registerCommonJs();
  register({ onImport: (url) => void (url.startsWith('file:') && tell(fileURLToPath(url))) });
  let exported: Record<string, unknown>;
  try {
    exported = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (error) {
    throw new PerdureError('INVALID_DEFINITION', `${path} cannot be loaded: ${problemOf(error)}`, {
      details: { module: path },
      cause: error,
    });
  } finally {
    for (const file of Object.keys(createRequire(import.meta.url).cache)) tell(file);
  }
  // A CommonJS module may have its exports inside the default export. A default export that is an agent has none.
  const inner = exported['default'];
  const held = isObject(inner) && inner['perdure'] === undefined ? inner : {};
  return { values: { ...held, ...exported }, names: Object.keys(exported) };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Loader errors about a module that mixes CommonJS and ES modules. */
const COMMON_JS =
  /Top-level await|ERR_REQUIRE|require\(\) (of ES Module|cannot be used)|Cannot use import statement|Unexpected token 'export'|import\.meta|"exports" main defined/;

function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const place = error.stack
    ?.split('\n')
    .find((line) => /^\s+at .*file:/.test(line) && !line.includes('/node_modules/') && !line.includes(OWN));
  const said = `${error.name === 'Error' || isPerdureError(error) ? '' : `${error.name}: `}${error.message}${place === undefined ? '' : ` (${place.trim()})`}`;
  return COMMON_JS.test(error.message)
    ? `${said}. The module is CommonJS, but it must be an ES module: set "type": "module" in its package.json, or rename it to .mts or .mjs`
    : said;
}

/** Loads agents from a user's module, JavaScript or TypeScript. */
import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { register as registerCommonJs } from 'tsx/cjs/api';
import { register } from 'tsx/esm/api';
import type { DefinedAgent, ModelRegistry } from '../agent/index.ts';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import { OWN } from '../worker/own-modules.ts';

export interface LoadedAgents {
  agents: DefinedAgent[];
  /** The module's export `models`, which resolves models that agents name by text. */
  models?: ModelRegistry;
}

const EXAMPLE = "export const support = defineAgent({ name: 'support', model: …, instructions: '…' })";

/** Where to look for agents when no module is named. */
const USUAL = [
  'agents.ts',
  'agents.js',
  'agents.mjs',
  'agents/index.ts',
  'src/agents.ts',
  'src/agents/index.ts',
];

/** The path of the named module, or of the usual one. @throws PerdureError `INVALID_ARGUMENT` */
export function agentsPath(named: string | undefined): string {
  const path = named === undefined ? USUAL.find(isFile) : named;
  if (path !== undefined && isFile(path)) return resolve(path);
  throw new PerdureError(
    'INVALID_ARGUMENT',
    path === undefined
      ? `module: found none of ${USUAL.join(', ')}. Name your module, or create one with: ${EXAMPLE}`
      : `module: ${resolve(path)} is not a file. Name a module that exports an agent, such as: ${EXAMPLE}`,
    { details: { module: path ?? null } },
  );
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/**
 * Imports a module and returns all agents that it exports.
 *
 * @param onFile - called with each of the user's files in the module, also when it fails.
 * @throws PerdureError `INVALID_DEFINITION` when it cannot be loaded or exports no agent.
 */
export async function loadAgents(path: string, onFile: (file: string) => void): Promise<LoadedAgents> {
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
  return agentsOf(path, exported);
}

function agentsOf(path: string, exported: Record<string, unknown>): LoadedAgents {
  // A CommonJS module may have its exports in the default one.
  const inner = exported['default'];
  const values = { ...(isObject(inner) && !isAgent(inner) ? inner : {}), ...exported };
  const agents = [...new Set(Object.values(values).filter(isAgent))];
  if (agents.length === 0) {
    const names = Object.keys(exported);
    throw new PerdureError(
      'INVALID_DEFINITION',
      `${path} exports no agent (it exports ${names.length > 0 ? names.join(', ') : 'nothing'}). Add one, such as: ${EXAMPLE}`,
      { details: { module: path, exports: names } },
    );
  }
  const models = values['models'];
  if (models === undefined) return { agents };
  if (isRegistry(models)) return { agents, models };
  throw new PerdureError(
    'INVALID_DEFINITION',
    `${path}: the export models is not a provider registry. Write: export const models = createProviderRegistry({ … })`,
    { details: { module: path } },
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isAgent(value: unknown): value is DefinedAgent {
  return isObject(value) && value['perdure'] === 'agent';
}

function isRegistry(value: unknown): value is ModelRegistry {
  return isObject(value) && typeof value['languageModel'] === 'function';
}

/** Messages of loaders that confuse CommonJS and ES modules. */
const COMMON_JS =
  /Top-level await|ERR_REQUIRE|require\(\) (of ES Module|cannot be used)|Cannot use import statement|Unexpected token 'export'|import\.meta|"exports" main defined/;

function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const place = error.stack
    ?.split('\n')
    .find((line) => /^\s+at .*file:/.test(line) && !line.includes('/node_modules/') && !line.includes(OWN));
  const said = `${error.name === 'Error' || isPerdureError(error) ? '' : `${error.name}: `}${error.message}${place === undefined ? '' : ` (${place.trim()})`}`;
  return COMMON_JS.test(error.message)
    ? `${said}. The module is CommonJS, but agents must be ES modules: set "type": "module" in its package.json, or rename the module to .mts or .mjs`
    : said;
}

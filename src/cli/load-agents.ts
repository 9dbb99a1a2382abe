/** Loads agents from a user's module, JavaScript or TypeScript. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DefinedAgent, ModelRegistry } from '../agent/index.ts';
import { PerdureError } from '../contract/errors.ts';
import type { Webhook } from '../webhooks/index.ts';
import type { RateLimit } from '../worker/rate-limits.ts';
import { importModule, isObject } from './import-module.ts';

export interface LoadedAgents {
  agents: DefinedAgent[];
  /** The module's export `models`, which resolves models that agents name by text. */
  models?: ModelRegistry;
  /** The module's export `webhooks`. The worker checks each. */
  webhooks?: Readonly<Record<string, Webhook>>;
  /** The module's export `rateLimits`. The worker checks each. */
  rateLimits?: Readonly<Record<string, RateLimit>>;
}

/** The exports that are options of the worker, each with what it must be. */
const OPTIONS = {
  models: {
    is: isRegistry,
    write: 'a provider registry. Write: export const models = createProviderRegistry({ … })',
  },
  webhooks: {
    is: isObject,
    write: "an object of webhooks. Write: export const webhooks = { desk: { url: '…' } }",
  },
  rateLimits: {
    is: isObject,
    write: 'an object of limits. Write: export const rateLimits = { openai: { requestsPerMinute: 500 } }',
  },
} as const;

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
 * Imports a module and returns all agents that it exports, and the worker's options among its exports.
 *
 * @param onFile - called with each of the user's files in the module, also when it fails.
 * @throws PerdureError `INVALID_DEFINITION` when it cannot be loaded, exports no agent, or an option of the wrong kind.
 */
export async function loadAgents(path: string, onFile: (file: string) => void): Promise<LoadedAgents> {
  const { values, names } = await importModule(path, onFile);
  const agents = [...new Set(Object.values(values).filter(isAgent))];
  if (agents.length === 0) {
    throw new PerdureError(
      'INVALID_DEFINITION',
      `${path} exports no agent (it exports ${names.length > 0 ? names.join(', ') : 'nothing'}). Add one, such as: ${EXAMPLE}`,
      { details: { module: path, exports: names } },
    );
  }
  const options = Object.entries(OPTIONS).flatMap(([name, { is, write }]) => {
    const value = values[name];
    if (value === undefined) return [];
    if (is(value)) return [[name, value]];
    throw new PerdureError('INVALID_DEFINITION', `${path}: the export ${name} is not ${write}`, {
      details: { module: path },
    });
  });
  return { agents, ...(Object.fromEntries(options) as Omit<LoadedAgents, 'agents'>) };
}

function isAgent(value: unknown): value is DefinedAgent {
  return isObject(value) && value['perdure'] === 'agent';
}

function isRegistry(value: unknown): value is ModelRegistry {
  return isObject(value) && typeof value['languageModel'] === 'function';
}

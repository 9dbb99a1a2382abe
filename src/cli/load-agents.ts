/** Loads agents from a user's module, JavaScript or TypeScript. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DefinedAgent, ModelRegistry } from '../agent/index.ts';
import { PerdureError } from '../contract/errors.ts';
import type { Webhook } from '../webhooks/index.ts';
import { importModule, isObject } from './import-module.ts';

export interface LoadedAgents {
  agents: DefinedAgent[];
  /** The module's export `models`, which resolves models that agents name by text. */
  models?: ModelRegistry;
  /** The module's export `webhooks`. The worker checks it. */
  webhooks?: Readonly<Record<string, Webhook>>;
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
  const { values, names } = await importModule(path, onFile);
  const agents = [...new Set(Object.values(values).filter(isAgent))];
  if (agents.length === 0) {
    throw new PerdureError(
      'INVALID_DEFINITION',
      `${path} exports no agent (it exports ${names.length > 0 ? names.join(', ') : 'nothing'}). Add one, such as: ${EXAMPLE}`,
      { details: { module: path, exports: names } },
    );
  }
  const { models, webhooks } = values;
  const notifying = isObject(webhooks) ? { webhooks: webhooks as Readonly<Record<string, Webhook>> } : {};
  if (models === undefined) return { agents, ...notifying };
  if (isRegistry(models)) return { agents, models, ...notifying };
  throw new PerdureError(
    'INVALID_DEFINITION',
    `${path}: the export models is not a provider registry. Write: export const models = createProviderRegistry({ … })`,
    { details: { module: path } },
  );
}

function isAgent(value: unknown): value is DefinedAgent {
  return isObject(value) && value['perdure'] === 'agent';
}

function isRegistry(value: unknown): value is ModelRegistry {
  return isObject(value) && typeof value['languageModel'] === 'function';
}

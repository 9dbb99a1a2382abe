/** The workflows that a worker runs: the bundle of the package, or one that is made for this worker. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import {
  type BundleOptions,
  bundleWorkflowCode,
  DefaultLogger,
  type Logger,
  Runtime,
  type WorkerOptions,
} from '@temporalio/worker';
import packageJson from '@temporalio/worker/package.json' with { type: 'json' };
import { PerdureError } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import { WORKFLOW } from '../contract/names.ts';
import { isOurConverter } from './encoded-failures.ts';
import { filesDirectory, generatedModule, writeWhole } from './own-directory.ts';
import { OWN, ownModule } from './own-modules.ts';

const ROOMS = ['contract', 'session', 'thread', 'pool', 'rates', 'workflows'] as const;

/** The name of a built bundle holds the version of its SDK. A worker with another version must not run the bundle. */
const PREBUILT = /^workflow-bundle-(.+)\.js$/;

/**
 * The file name of the bundle of a build.
 *
 * @public
 */
export const prebuiltName: string = `workflow-bundle-${packageJson.version}.js`;

/**
 * Keeps the SDK from recording a stack for each promise, and from reading the source map for it. The SDK does so for
 * the query `__stack_trace`, which would only name lines of this package; a session's details and state say what it
 * waits for. A user's own bundle keeps the stacks, and errors keep the place where they were thrown. The SDK gets
 * `Error` by compiling a text for each promise. This code answers that text, and compiles other texts as before. The
 * SDK freezes `Promise` when it loads the bundle, so this cannot be done later.
 * - Figure: without stacks, the worker's processor time a turn went from 0.75 to 0.71 times the bare workflow's with a
 *   read, and from 1.23 to 1.14 times with a mutation. It also makes the first takeovers of a new worker faster.
 * - When the SDK changes: it records stacks again. `test/session/ui-texts` fails.
 */
const NO_STACKS = `
{
  class Unrecorded {}
  const known = {
    'return globalThis.__TEMPORAL_ACTIVATOR__': () => globalThis.__TEMPORAL_ACTIVATOR__,
    'return globalThis.Error': () => Unrecorded,
  };
  Object.defineProperty(Promise, 'constructor', { value: (code) => known[code] ?? Function(code) });
}
`;

/** The bundles that {@link workflowBundle} has returned. */
const ownBundles = new Set<string>();

/** The directory of the sessions' workflows. */
const workflowsPath: string = join(OWN, 'workflows');

/**
 * The path of the sessions' workflow bundle: the built one, if it holds this SDK, or one that is bundled and cached by
 * its digest.
 */
export async function workflowBundle(
  logger?: Logger,
  failureConverterPath?: string,
): Promise<{ codePath: string }> {
  const codePath = await findBundle(logger, failureConverterPath);
  ownBundles.add(codePath);
  return { codePath };
}

async function findBundle(logger?: Logger, failureConverterPath?: string): Promise<string> {
  const prebuilt = readdirSync(OWN).find((name) => PREBUILT.test(name));
  if (prebuilt === prebuiltName && failureConverterPath === undefined) return join(OWN, prebuilt);
  const failures = failureConverterPath === undefined ? '' : `-${basename(failureConverterPath, '.cjs')}`;
  const codePath = join(filesDirectory(), `${await sourcesDigest(prebuilt)}${failures}.js`);
  if (existsSync(codePath)) return codePath;
  if (prebuilt !== undefined && prebuilt !== prebuiltName) {
    const [, other] = PREBUILT.exec(prebuilt) ?? [];
    Runtime.instance().logger.warn(
      `The workflow bundle of perdure was built with Temporal SDK ${other}, but this worker runs ${packageJson.version}. Bundling the workflows again; this takes some seconds.`,
    );
  }
  writeWhole(codePath, await buildWorkflowBundle(logger, OWN, failureConverterPath));
  return codePath;
}

/**
 * Chooses the workflows of a worker or a replay. Converters and workflow interceptors run inside the bundle, so with
 * them the SDK bundles at each start. A user's bundle must hold our workflows.
 *
 * @throws PerdureError `INVALID_DEFINITION` when a user's bundle does not hold them
 */
export async function workflowsFor(
  options: Pick<WorkerOptions, 'workflowBundle' | 'workflowsPath' | 'dataConverter' | 'interceptors'>,
): Promise<Pick<WorkerOptions, 'workflowBundle' | 'workflowsPath'> | undefined> {
  const given = options.workflowBundle;
  if (given !== undefined) {
    const code = 'code' in given ? given.code : await readFile(given.codePath, 'utf8');
    if (code.includes(WORKFLOW.session)) return undefined;
    throw new PerdureError(
      'INVALID_DEFINITION',
      'workflowBundle: the bundle lacks the workflows of sessions. Pass PerdurePlugin to bundleWorkflowCode as a plugin, or re-export perdure/workflows from your workflows.',
      { details: { field: 'workflowBundle' } },
    );
  }
  if (options.workflowsPath !== undefined) return undefined;
  if (runsOwnCode(options)) return { workflowsPath };
  return { workflowBundle: await workflowBundle(undefined, options.dataConverter?.failureConverterPath) };
}

/** Whether options name a user's code that runs inside the bundle. */
export function runsOwnCode({
  dataConverter,
  interceptors,
}: Pick<WorkerOptions, 'dataConverter' | 'interceptors'>): boolean {
  return (
    dataConverter?.payloadConverterPath !== undefined ||
    (dataConverter?.failureConverterPath !== undefined &&
      !isOurConverter(dataConverter.failureConverterPath)) ||
    (interceptors?.workflowModules ?? []).length > 0
  );
}

/** Whether a bundle is the package's own. */
export function isOwnBundle(codePath: string): boolean {
  return ownBundles.has(codePath);
}

/** Adds the sessions' workflows to a user's bundle. The user's workflows win where names are equal. */
export function withSessionWorkflows(options: BundleOptions): BundleOptions {
  const theirs = options.workflowsPath;
  if (theirs === workflowsPath || theirs === ownModule('workflows/index')) {
    return { ...options, ...sharedModules(OWN, options) };
  }
  const modules = [ownModule('workflows/index'), theirs].map((path) => `...require(${JSON.stringify(path)})`);
  const entry = `module.exports = { ${modules.join(', ')} };\n`;
  const { webpackConfigHook = (config) => config } = options;
  // The generated entry is in a directory without packages.
  const packages = join(
    createRequire(import.meta.url).resolve('@temporalio/workflow/package.json'),
    '../../..',
  );
  return {
    ...options,
    workflowsPath: generatedModule(entry),
    webpackConfigHook: (config) =>
      webpackConfigHook({
        ...config,
        resolve: { ...config.resolve, modules: [...(config.resolve?.modules ?? []), packages] },
      }),
  };
}

/**
 * Bundles the sessions' workflows, for the build of the package.
 *
 * @public
 * @param directory - where this package's modules lie, which is elsewhere while it is built.
 */
export async function buildWorkflowBundle(
  logger?: Logger,
  directory: string = OWN,
  failureConverterPath?: string,
): Promise<string> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(directory, 'workflows'),
    ...defined({ failureConverterPath }),
    ...sharedModules(directory),
    logger: logger ?? new DefaultLogger('WARN'),
  });
  return code.replace(/(?=\/\/# sourceMappingURL=data:[^\n]*\s*$)/, NO_STACKS);
}

/** Loads one copy of the workflows for all sessions of a worker, because loading them for each session is slow. */
function sharedModules(
  directory: string,
  { preloadModules = [], webpackConfigHook = (config) => config }: Partial<BundleOptions> = {},
): Pick<BundleOptions, 'preloadModules' | 'webpackConfigHook'> {
  const shared = ownModule('workflows/index', directory);
  return {
    preloadModules: [...preloadModules, shared],
    // The package has no side effects, so webpack would drop a module that is only loaded.
    webpackConfigHook: (config) =>
      webpackConfigHook({
        ...config,
        module: {
          ...config.module,
          rules: [...(config.module?.rules ?? []), { include: shared, sideEffects: true }],
        },
      }),
  };
}

/** The digest of the SDK's version and of everything that goes into a bundle. */
async function sourcesDigest(prebuilt: string | undefined): Promise<string> {
  // This file decides how the workflows are bundled.
  const hash = createHash('sha256')
    .update(packageJson.version)
    .update(await readFile(import.meta.filename));
  if (prebuilt !== undefined) hash.update(await readFile(join(OWN, prebuilt)));
  for (const room of prebuilt === undefined ? ROOMS : []) {
    for (const name of (await readdir(join(OWN, room))).sort()) {
      hash.update(name).update(await readFile(join(OWN, room, name)));
    }
  }
  return hash.digest('hex').slice(0, 32);
}

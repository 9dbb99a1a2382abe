import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger, type Logger } from '@temporalio/worker';
import packageJson from '@temporalio/worker/package.json' with { type: 'json' };
import { ownDirectory } from './own-directory.ts';
import { OWN, ownModule } from './own-modules.ts';

const ROOMS = ['contract', 'session', 'workflows'] as const;

/** The directory of the workflows, for a worker that bundles them with workflows of its own. */
export const workflowsPath: string = join(OWN, 'workflows');

/**
 * The sessions' workflow bundle: the one that was built with the package, or one made from the sources and
 * kept by their digest, so that a worker starts without bundling.
 */
export async function workflowBundle(logger?: Logger): Promise<{ codePath: string }> {
  const prebuilt = join(OWN, 'workflow-bundle.js');
  if (existsSync(prebuilt)) return { codePath: prebuilt };
  const cache = await bundlesDirectory();
  const codePath = join(cache, `${await sourcesDigest()}.js`);
  if (existsSync(codePath)) return { codePath };
  const code = await buildWorkflowBundle(logger);
  const partial = `${codePath}.${process.pid}`;
  await writeFile(partial, code);
  await rename(partial, codePath);
  return { codePath };
}

/**
 * The build id of a worker that runs this bundle. Temporal writes it into half of a session's events; the SDK's
 * own has 91 characters, which would be a tenth of the history.
 */
export async function buildIdOf({ codePath }: { codePath: string }): Promise<string> {
  const digest = createHash('sha256')
    .update(await readFile(codePath))
    .digest('hex');
  return digest.slice(0, 8);
}

/**
 * Frames of a stack in the sandbox. The SDK takes a stack of each promise, for Temporal's query `__stack_trace`: with
 * ten frames, Node's default, that was a third of what workflow code took of the processor. Three still name the place.
 */
const STACK_FRAMES = 3;

/**
 * Bundles the sessions' workflows, for the build of the package.
 *
 * @public
 * @param directory - where this package's modules lie, which is elsewhere while it is built.
 */
export async function buildWorkflowBundle(logger?: Logger, directory: string = OWN): Promise<string> {
  // One copy of the workflows, with all that they import, serves the sessions of a worker. Loading the modules for
  // each session would be most of what its start and its waiting cost, and its first turns would run code that is
  // cold. No module of these rooms has a state of its own, and Temporal freezes what they export.
  const shared = ownModule('workflows/index', directory);
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(directory, 'workflows'),
    preloadModules: [shared],
    // The package has no side effects, and webpack would leave out what is only loaded.
    webpackConfigHook: (config) => ({
      ...config,
      module: {
        ...config.module,
        rules: [...(config.module?.rules ?? []), { include: shared, sideEffects: true }],
      },
    }),
    logger: logger ?? new DefaultLogger('WARN'),
  });
  // On the first line, so that the source map stays true.
  return `Error.stackTraceLimit = ${STACK_FRAMES};${code}`;
}

/** What lies there is run, so it is this user's alone. */
async function bundlesDirectory(): Promise<string> {
  const shared = join(tmpdir(), `perdure-bundles-${process.getuid?.() ?? 0}`);
  return (await ownDirectory(shared)) ? shared : mkdtemp(`${shared}-`);
}

async function sourcesDigest(): Promise<string> {
  // How it is bundled is in this file.
  const hash = createHash('sha256')
    .update(packageJson.version)
    .update(await readFile(import.meta.filename));
  for (const room of ROOMS) {
    for (const name of (await readdir(join(OWN, room))).sort()) {
      hash.update(name).update(await readFile(join(OWN, room, name)));
    }
  }
  return hash.digest('hex').slice(0, 32);
}

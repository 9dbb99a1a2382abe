/**
 * Stands in for the harness's module: worker processes of tests run from the build of this run, if their agents are in
 * it.
 */
import { fileURLToPath, pathToFileURL } from 'node:url';
import { startWorkerProcess as start } from '../../src/testing/harness/worker-process.ts';
import { ownModule } from '../../src/worker/own-modules.ts';
import { builtFile } from './built-file.ts';
import { SHORT_LIVED } from './short-lived.ts';

/** Starts a worker process. */
export const startWorkerProcess: typeof start = (config, env, onFork) => {
  const main = builtFile(ownModule('testing/harness/worker-main'));
  const module = builtFile(fileURLToPath(config.module));
  if (main === undefined || module === undefined) return start(config, env, onFork);
  return start({ ...config, module: pathToFileURL(module).href }, env, onFork, {
    main,
    execArgv: SHORT_LIVED,
  });
};

import { type Command, Option } from 'commander';
import { invalid, PerdureError } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import type { DeploymentOptions } from '../../worker/index.ts';
import type { Cli } from '../cli.ts';

interface Options {
  supervised?: true;
  deployment?: string;
  buildId?: string;
  pinned?: true;
}

/** `perdure worker`: runs the sessions of a module's agents. */
export function worker(program: Command, cli: Cli): void {
  program
    .command('worker')
    .summary('run a worker for the agents of a module')
    .description(
      'Run a worker for all agents that a module exports, until Ctrl-C or SIGTERM. Calls in flight then get ten seconds.',
    )
    .argument('[module]', 'JavaScript or TypeScript (default: agents.ts, agents.js, agents/index.ts, …)')
    .addOption(
      new Option('--deployment <name>', 'give the worker a version of this deployment').env(
        'TEMPORAL_DEPLOYMENT_NAME',
      ),
    )
    .addOption(
      new Option('--build-id <id>', 'name of the version (default: from the workflow code)').env(
        'TEMPORAL_WORKER_BUILD_ID',
      ),
    )
    .option('--pinned', 'sessions stay on their version until they are moved')
    .addOption(new Option('--supervised').hideHelp())
    .addHelpText(
      'after',
      '\nThe module can export `models`, a provider registry of the AI SDK. Without it, a' +
        '\nmodel that is a text comes from OPENAI_BASE_URL and OPENAI_API_KEY. It can also' +
        '\nexport `webhooks` and `rateLimits`.',
    )
    .action(async (module: string | undefined, options: Options, typed: Command) => {
      // The environment of a container may name a build without a deployment.
      if (options.deployment === undefined && typed.getOptionValueSource('buildId') === 'cli')
        throw invalid('--build-id', 'needs --deployment <name>');
      const { agentsPath } = await import('../load-agents.ts');
      const path = agentsPath(module);
      const { runWorker } = await import('../run-worker.ts');
      await runWorker(cli, path, { supervised: options.supervised === true, ...versionOf(options) });
    });
}

/** The version of the worker. The worker of `perdure dev` has none, whatever the environment says. */
function versionOf({ supervised, deployment, buildId, pinned }: Options): { deployment?: DeploymentOptions } {
  if (supervised) return {};
  if (deployment === undefined) {
    if (pinned === undefined) return {};
    throw new PerdureError('INVALID_ARGUMENT', '--pinned needs --deployment <name>');
  }
  const behavior = pinned === true ? ('PINNED' as const) : ('AUTO_UPGRADE' as const);
  return { deployment: { name: deployment, behavior, ...defined({ buildId }) } };
}

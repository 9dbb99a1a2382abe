import { type Command, Option } from 'commander';
import type { Cli } from '../cli.ts';

/** `perdure worker`: runs the sessions of a module's agents. */
export function worker(program: Command, cli: Cli): void {
  program
    .command('worker')
    .summary('run the sessions of the agents that a module exports')
    .description('run the sessions of the agents that a module exports, until Ctrl-C or SIGTERM')
    .argument('[module]', 'JavaScript or TypeScript (default: agents.ts, agents.js, agents/index.ts, …)')
    .addOption(new Option('--supervised').hideHelp())
    .addHelpText(
      'after',
      '\nThe module may export `models`, an AI SDK provider registry; otherwise models that agents name by text are' +
        '\nthose of OPENAI_BASE_URL and OPENAI_API_KEY. At the end, calls in flight get ten seconds.',
    )
    .action(async (module: string | undefined, options: { supervised?: true }) => {
      const { agentsPath } = await import('../load-agents.ts');
      const path = agentsPath(module);
      const { runWorker } = await import('../run-worker.ts');
      await runWorker(cli, path, options.supervised === true);
    });
}

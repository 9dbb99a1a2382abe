import { type Command, Option } from 'commander';
import type { Cli } from '../cli.ts';

/** `perdure worker`: runs the sessions of a module's agents. */
export function worker(program: Command, cli: Cli): void {
  program
    .command('worker')
    .summary('run a worker for the agents of a module')
    .description(
      'Run a worker for all agents that a module exports, until Ctrl-C or SIGTERM. Calls in flight then get ten seconds.',
    )
    .argument('[module]', 'JavaScript or TypeScript (default: agents.ts, agents.js, agents/index.ts, …)')
    .addOption(new Option('--supervised').hideHelp())
    .addHelpText(
      'after',
      '\nThe module can export `models`, a provider registry of the AI SDK. Without it, a' +
        '\nmodel that is a text comes from OPENAI_BASE_URL and OPENAI_API_KEY.',
    )
    .action(async (module: string | undefined, options: { supervised?: true }) => {
      const { agentsPath } = await import('../load-agents.ts');
      const path = agentsPath(module);
      const { runWorker } = await import('../run-worker.ts');
      await runWorker(cli, path, options.supervised === true);
    });
}

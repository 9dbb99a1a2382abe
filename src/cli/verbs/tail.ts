import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { EXIT } from '../failures.ts';
import { count } from '../input.ts';

interface Options {
  once?: true;
  messages: number;
}

/** `perdure tail`: a session live. */
export function tail(program: Command, cli: Cli): void {
  program
    .command('tail')
    .description('Follow a session live, until it closes or Ctrl-C.')
    .summary('follow a session live')
    .argument('<session>', 'id of the session')
    .option('--once', 'end when the session waits for somebody or closes')
    .option('--messages <count>', 'start with the last <count> messages', count, 1)
    .action(async (id: string, options: Options) => {
      const session = await cli.session(id);
      const { follow } = await import('../follow.ts');
      const { messages, once = false } = options;
      const view = await follow(cli, session, { messages, once });
      if (view === null) process.exitCode = EXIT.interrupted;
    });
}

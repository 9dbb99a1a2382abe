import { randomUUID } from 'node:crypto';
import { type Command, Option } from 'commander';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';
import { textOf, typedWith } from '../input.ts';

interface Options {
  interrupt?: true;
  aside?: true;
  pin?: true;
  id?: string;
  by?: string;
  follow?: true;
}

/** `perdure send`: a message to a session. */
export function send(program: Command, cli: Cli): void {
  program
    .command('send')
    .description('Send a message to a session.')
    .summary('send a message to a session')
    .argument('<session>', 'id of the session')
    .argument('<message>', 'the text; - reads standard input')
    .option('--interrupt', 'stop the current turn instead of waiting for its end')
    .addOption(
      new Option('--aside', 'answer it now, beside calls that wait or run, without changing them').conflicts(
        'interrupt',
      ),
    )
    .option('--pin', 'no summary replaces it: the model always sees it word for word')
    .option('--id <id>', 'id of the message; the session takes each id once')
    .option('--by <name>', 'who sends it (default: $USER)')
    .option('--follow', 'show what the session does until it waits or closes')
    .action(async (id: string, message: string, options: Options) => {
      const { terminal } = cli;
      const session = await cli.session(id);
      const text = await textOf(message);
      const since = options.follow ? await session.cursor() : '';
      const messageId = options.id ?? randomUUID();
      cli.repeat = typedWith({ '--id': messageId });
      const { phase, queued } = await terminal.wait('sending', () =>
        session.send({
          text,
          by: cli.actor(options.by),
          id: messageId,
          ...(options.interrupt ? { mode: 'interrupt' } : {}),
          ...(options.aside ? { mode: 'aside' } : {}),
          ...(options.pin ? { pin: true } : {}),
        }),
      );
      cli.repeat = null;
      if (!options.follow) {
        const next = command('tail', id);
        terminal.result(
          { sessionId: id, messageId, phase, queued, next },
          () => `sent to ${id}, which is ${phase}\n  next: ${next}`,
        );
        return;
      }
      const { followToRest } = await import('../follow.ts');
      await followToRest(cli, session, since);
    });
}

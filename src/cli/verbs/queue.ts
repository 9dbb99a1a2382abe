import type { Command } from 'commander';
import { invalid, PerdureError } from '../../contract/errors.ts';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';
import { textOf } from '../input.ts';
import { clean, inline } from '../terminal.ts';

interface Options {
  edit?: string;
  withdraw?: true;
  by?: string;
}

/** `perdure queue`: messages that wait for the end of a turn. */
export function queue(program: Command, cli: Cli): void {
  program
    .command('queue')
    .summary('show, change or withdraw messages that wait')
    .description('Show the messages that wait for the end of the turn, or change or withdraw one of them.')
    .argument('<session>', 'id of the session')
    .argument('[message]', 'id of the message to change or withdraw')
    .option('--edit <text>', 'its new text; - reads standard input')
    .option('--withdraw', 'take it back: the model never sees it')
    .option('--by <name>', 'who does it (default: $USER)')
    .action(async (sessionId: string, messageId: string | undefined, options: Options) => {
      const { terminal } = cli;
      const { edit, withdraw } = options;
      if ((messageId !== undefined) !== ((edit !== undefined) !== (withdraw === true)))
        throw new PerdureError(
          'INVALID_ARGUMENT',
          'Name a message together with --edit <text> or --withdraw, or only the session to show its queue',
        );
      if (options.by !== undefined && messageId === undefined)
        throw invalid('--by', 'needs a message with --edit or --withdraw');
      const session = await cli.session(sessionId);
      const by = cli.actor(options.by);
      if (messageId !== undefined) {
        const text = edit === undefined ? null : await textOf(edit);
        const { phase, queued } = await terminal.wait('sending', () =>
          text === null ? session.withdraw(messageId, { by }) : session.editMessage(messageId, { text, by }),
        );
        const done = text === null ? 'withdrawn' : 'changed';
        terminal.result({ sessionId, messageId, [done]: true, by, phase, queued }, () =>
          [
            `${done}: ${clean(messageId)}; ${queued} queued, the session is ${phase}`,
            `  next: ${clean(command('queue', sessionId))}`,
          ].join('\n'),
        );
        return;
      }
      const items = await terminal.wait(`reading ${sessionId}`, () => session.queue());
      terminal.result({ sessionId, items }, () =>
        items.length === 0
          ? `${clean(sessionId)} has no queued message`
          : items
              .flatMap(({ id, text, by: sender, at, edited }) => [
                `${clean(id)}  ${inline(text)}`,
                `  by ${clean(sender)} at ${at}${edited === undefined ? '' : `, changed by ${clean(edited.by)} at ${edited.at}`}`,
              ])
              .concat(`next: ${clean(command('queue', sessionId, items[0]?.id ?? '', '--withdraw'))}`)
              .join('\n'),
      );
    });
}

import type { Command } from 'commander';
import type { InboxItem } from '../../client/index.ts';
import { SHOWN_DIGITS } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';
import { count } from '../input.ts';
import { clean, inline } from '../terminal.ts';

interface Options {
  agent?: string;
  tenant?: string;
  limit?: number;
}

/** The most characters of a call's arguments. */
const BRIEF = 300;

const KIND: Record<InboxItem['kind'], string> = {
  approval: 'waits for approval',
  question: 'question',
  unknown: 'outcome unknown',
  stuck: 'tool is missing',
  budget: 'budget is spent',
  wait: 'waits',
  unreadable: 'cannot be read',
};

/** `perdure inbox`: what waits for a person. */
export function inbox(program: Command, cli: Cli): void {
  program
    .command('inbox')
    .summary('show what waits for a person')
    .description(
      'Show what waits for a person in all sessions, with what each answer would do. What expires first comes first. ' +
        'It can lag by a second.',
    )
    .option('--agent <name>', 'only of this agent')
    .option('--tenant <name>', 'only of this tenant')
    .option('--limit <count>', 'read at most this many sessions, the newest first (default: 200)', count)
    .action(async (options: Options) => {
      const { terminal } = cli;
      const { sessions } = await cli.connect();
      const { items, waiting, read } = await terminal.wait('reading', () => sessions.inbox(options));
      for (const item of items) terminal.item(item, () => `${itemLines(item, cli)}\n`);
      if (items.length === 0) terminal.progress('nothing waits for a person');
      if (read < waiting)
        terminal.warn(`${waiting} sessions wait; ${read} were read. For more: --limit ${waiting}`);
    });
}

function itemLines(
  { sessionId, agent, kind, reason, since, until, call, answers }: InboxItem,
  { terminal }: Cli,
): string {
  const what =
    call === null ? '' : `${terminal.style('bold', clean(call.tool))} ${inline(call.args, BRIEF)}  `;
  const effect = call?.effect === undefined ? [] : [call.effect];
  const facts = [
    ...effect,
    ...(since === null ? [] : [`since ${since}`]),
    ...(until === null ? [] : [`until ${until}`]),
    ...(call === null ? [] : [`digest ${call.argsDigest.slice(0, SHOWN_DIGITS)}`]),
  ];
  return [
    `${terminal.style('bold', clean(sessionId))}  ${clean(agent ?? '-')}  ${terminal.style('cyan', KIND[kind])}`,
    ...(what === '' ? [] : [`  ${what.trimEnd()}`]),
    `  ${clean(reason)}`,
    terminal.style('dim', `  ${facts.join(' · ')}`),
    ...answers.map(({ command, does }) => `  ${clean(command)}\n    ${terminal.style('dim', clean(does))}`),
  ].join('\n');
}

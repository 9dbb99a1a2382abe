import type { Command } from 'commander';
import { usd } from '../../session/budget.ts';
import { commandsFor } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';
import { clean, inline } from '../terminal.ts';

/** `perdure tree`: a session with its sub-agents, and what waits for a person in it. */
export function tree(program: Command, cli: Cli): void {
  program
    .command('tree')
    .summary('show a session with its sub-agents')
    .description(
      'Show a session with the sub-agents below it, what each has used, and all that waits for a person.',
    )
    .argument('<session>', 'id of the session')
    .action(async (sessionId: string) => {
      const { terminal } = cli;
      const session = await cli.session(sessionId);
      const { nodes, open } = await terminal.wait(`reading ${sessionId}`, () => session.tree());
      terminal.result({ sessionId, nodes, open }, () =>
        [
          ...nodes.map(({ agent, status, depth, sessionId: id, usage }) => {
            const used = usage === null ? '' : `  ${usage.turns} turns, $${usd(usage.nanoUsd).toFixed(4)}`;
            return `${'  '.repeat(depth)}${clean(agent)}  ${status}${used}  ${clean(id)}`;
          }),
          ...open.flatMap(({ path, call, wait }) => {
            const next = (call ?? wait)?.next;
            const what =
              call === null ? (wait?.message ?? '') : `${call.tool} ${call.callId}: ${call.status.kind}`;
            return [
              `${path.map(clean).join(' > ')} waits: ${inline(what)}`,
              ...(next === undefined ? [] : commandsFor(next).map((line) => `  next: ${clean(line)}`)),
            ];
          }),
        ].join('\n'),
      );
    });
}

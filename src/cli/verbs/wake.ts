import type { Command } from 'commander';
import type { Sleeping } from '../../contract/built-in.ts';
import { PerdureError } from '../../contract/errors.ts';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';

/** `perdure wake`: ends the wait of a call that sleeps until a time. */
export function wake(program: Command, cli: Cli): void {
  program
    .command('wake')
    .summary('end a wait early')
    .description('End the wait of a call that sleeps until a time. The model is told who ended it.')
    .argument('<session>', 'id of the session')
    .argument('[call]', 'id of the call; not needed when only one waits')
    .option('--by <name>', 'who ends it (default: $USER)')
    .action(async (sessionId: string, named: string | undefined, options: { by?: string }) => {
      const session = await cli.session(sessionId);
      const call = chosen((await session.state()).sleeping, sessionId, named);
      const by = cli.actor(options.by);
      await session.decide(call, { decision: 'approve' }, { by });
      const next = command('tail', sessionId);
      cli.terminal.result(
        { sessionId, callId: call.callId, asked: 'wake', by, next },
        () => `ended the wait of ${call.callId}\n  next: ${next}`,
      );
    });
}

function chosen(sleeping: readonly Sleeping[], sessionId: string, named: string | undefined): Sleeping {
  const [first, ...more] = sleeping.filter(({ callId }) => named === undefined || callId === named);
  if (first !== undefined && more.length === 0) return first;
  const ids = sleeping.map(({ callId }) => callId).join(', ');
  throw new PerdureError(
    'UNKNOWN_CALL',
    `call: ${first === undefined ? 'no such call' : 'more than one call'} of ${sessionId} waits for a time. Waiting: ${ids || 'none'}`,
    { details: { sleeping: sleeping.map(({ callId }) => callId) } },
  );
}

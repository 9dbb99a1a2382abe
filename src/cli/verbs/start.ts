import { randomUUID } from 'node:crypto';
import { type Command, Option } from 'commander';
import type { Session, StartOptions } from '../../client/index.ts';
import { invalid, isPerdureError, PerdureError } from '../../contract/errors.ts';
import type { SendInput } from '../../contract/inputs.ts';
import { defined } from '../../contract/json.ts';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';
import { type BudgetOptions, contextOf, limitsOf, textOf, typedWith, withBudget } from '../input.ts';

interface Options extends BudgetOptions {
  id?: string;
  mode?: 'chat' | 'task';
  task?: true;
  context?: string;
  scratchpad?: string;
  pool?: string;
  by?: string;
  follow?: true;
  useExisting?: true;
  messageId?: string;
}

/** `perdure start`: a new session. */
export function start(program: Command, cli: Cli): void {
  const verb = program
    .command('start')
    .description('Start a session of an agent.')
    .summary('start a session')
    .argument('<agent>', 'name of the agent')
    .argument('[message]', 'the first message; - reads standard input')
    .option('--id <id>', "the session's id (default: random)")
    .addOption(new Option('--task', 'short for --mode task').conflicts('mode'))
    .addOption(
      new Option('--mode <mode>', 'chat waits for more messages, task ends with the answer').choices([
        'chat',
        'task',
      ]),
    )
    .option('--context <json>', 'context of the session, such as user and tenant; @file reads a file')
    .option('--pool <id>', 'pool of money that it shares with other sessions: perdure pool')
    .option('--scratchpad <directory>', 'directory for files of this session; tools get its path');
  withBudget(verb)
    .option('--by <name>', 'who sends the message (default: $USER)')
    .option('--use-existing', 'if a running session has this id, send it the message')
    .option('--message-id <id>', 'id of the message; the session takes each id once')
    .option('--follow', 'show what the session does until it waits or closes')
    .action(async (agent: string, message: string | undefined, options: Options) => {
      const { terminal } = cli;
      if (message === undefined && options.messageId !== undefined)
        throw invalid('--message-id', 'needs a message');
      if (message === undefined && options.by !== undefined) throw invalid('--by', 'needs a message');
      if (options.useExisting && options.id === undefined) throw invalid('--use-existing', 'needs --id');
      const first =
        message === undefined
          ? undefined
          : {
              text: await textOf(message),
              by: cli.actor(options.by),
              id: options.messageId ?? randomUUID(),
            };
      const { session, existing, since } = await startOrUse(cli, agent, first, options);
      cli.repeat = null;
      const next = command('tail', session.id);
      const value = { sessionId: session.id, agent, existing, taskQueue: cli.taskQueue, next };
      const said = `${existing ? 'using' : 'started'} ${session.id}`;
      if (!options.follow) {
        terminal.result(value, () => `${said}\n  next: ${next}`);
        return;
      }
      if (terminal.json) terminal.item({ type: 'session', ...value }, () => null);
      else terminal.progress(said);
      const { followToRest } = await import('../follow.ts');
      await followToRest(cli, session, since);
    });
}

async function startOrUse(
  cli: Cli,
  agent: string,
  message: SendInput | undefined,
  options: Options,
): Promise<{ session: Session; existing: boolean; since: string }> {
  const { sessions } = await cli.connect();
  const { id = `session-${randomUUID()}`, useExisting, follow } = options;
  cli.sessionId = id;
  const start = { ...(await startOptions(message, options)), id };
  cli.repeat = typedWith({
    '--id': id,
    // Without the message id, the repeated command would fail with SESSION_EXISTS.
    ...(useExisting && message?.id !== undefined ? { '--message-id': message.id } : {}),
  });
  try {
    return { session: await sessions.start(agent, start), existing: false, since: 'start' };
  } catch (error) {
    if (!useExisting || !isPerdureError(error, 'SESSION_EXISTS')) throw error;
  }
  const since = follow ? await sessions.get(id).cursor() : '';
  try {
    return { session: await sessions.start(agent, { ...start, onExisting: 'use' }), existing: true, since };
  } catch (error) {
    if (!isPerdureError(error, 'SESSION_EXISTS')) throw error;
    throw new PerdureError('SESSION_CLOSED', `Session ${id} is closed. Choose another id`, { cause: error });
  }
}

async function startOptions(message: SendInput | undefined, options: Options): Promise<StartOptions> {
  const { scratchpad, pool } = options;
  const mode = options.task ? 'task' : options.mode;
  const budget = limitsOf(options);
  return {
    ...defined({
      message,
      mode,
      context: await contextOf(options.context),
      budget,
      pool,
      scratchpadRoot: scratchpad,
    }),
  };
}

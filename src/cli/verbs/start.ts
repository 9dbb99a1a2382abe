import { type Command, Option } from 'commander';
import type { Session, StartOptions } from '../../client/index.ts';
import { isPerdureError } from '../../contract/errors.ts';
import type { SendInput } from '../../contract/inputs.ts';
import type { Cli, Connected } from '../cli.ts';
import { type BudgetOptions, limitsOf, textOf, withBudget } from '../input.ts';

interface Options extends BudgetOptions {
  id?: string;
  mode?: 'chat' | 'task';
  task?: true;
  tenant?: string;
  scratchpad?: string;
  by?: string;
  follow?: true;
  useExisting?: true;
}

/** `perdure start`: a new session. */
export function start(program: Command, cli: Cli): void {
  const command = program
    .command('start')
    .description('start a session of an agent')
    .argument('<agent>')
    .argument('[message]', "the first message, or '-' for standard input")
    .option('--id <id>', "the session's id (default: a random one)")
    .option('--task', 'end with the answer; the same as --mode task')
    .addOption(
      new Option('--mode <mode>', 'chat waits for the next message, task ends with the answer').choices([
        'chat',
        'task',
      ]),
    )
    .option('--tenant <name>', 'for whom; can be listed by')
    .option('--scratchpad <directory>', 'where tools keep files of this session');
  withBudget(command)
    .option('--by <name>', 'who says the message (default: $USER)')
    .option('--use-existing', 'when a running session has the id, send the message to it')
    .option('--follow', 'show what the session does until it rests')
    .action(async (agent: string, message: string | undefined, options: Options) => {
      const { terminal } = cli;
      const first =
        message === undefined ? undefined : { text: await textOf(message), by: cli.actor(options.by) };
      const { session, existing, from } = await startOrUse(cli, agent, first, options);
      cli.sessionId = session.id;
      const next = `perdure tail ${session.id}`;
      const value = { sessionId: session.id, agent, existing, taskQueue: cli.taskQueue, next };
      const said = `${existing ? 'using' : 'started'} ${session.id}`;
      if (!options.follow) {
        terminal.result(value, () => `${said}\n  next: ${next}`);
        return;
      }
      if (terminal.json) terminal.item({ type: 'session', ...value }, () => null);
      else terminal.progress(said);
      const { followToRest } = await import('../follow.ts');
      await followToRest(cli, session, from);
    });
}

async function startOrUse(
  cli: Cli,
  agent: string,
  message: SendInput | undefined,
  options: Options,
): Promise<{ session: Session; existing: boolean; from: number }> {
  const connected = await cli.connect();
  cli.sessionId = options.id ?? null;
  try {
    const session = await connected.sessions.start(agent, startOptions(message, options));
    return { session, existing: false, from: 0 };
  } catch (error) {
    const { id } = options;
    if (id === undefined || !options.useExisting || !isPerdureError(error, 'SESSION_EXISTS')) throw error;
    return { ...(await use(connected, id, message, options)), existing: true };
  }
}

/** The running session, which gets the message: to start with a used id would drop it. */
async function use(
  { sessions }: Connected,
  id: string,
  message: SendInput | undefined,
  { follow }: Options,
): Promise<{ session: Session; from: number }> {
  const session = sessions.get(id);
  const from = follow ? (await session.transcript({ limit: 0 })).total : 0;
  if (message !== undefined) await session.send(message);
  return { session, from };
}

function startOptions(message: SendInput | undefined, options: Options): StartOptions {
  const { id, tenant, scratchpad } = options;
  const mode = options.task ? 'task' : options.mode;
  const budget = limitsOf(options);
  return {
    ...(id === undefined ? {} : { id }),
    ...(message === undefined ? {} : { message }),
    ...(mode === undefined ? {} : { mode }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(budget === undefined ? {} : { budget }),
    ...(scratchpad === undefined ? {} : { scratchpadRoot: scratchpad }),
  };
}

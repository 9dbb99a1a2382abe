/** The command line: its verbs, its help, its exit codes. */
import { type Argument, Command, CommanderError } from 'commander';
import packageJson from 'perdure/package.json' with { type: 'json' };
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import type { Cli, GlobalOptions } from './cli.ts';
import { EXIT, reportFailure } from './failures.ts';
import { archive } from './verbs/archive.ts';
import { budget } from './verbs/budget.ts';
import { cancel } from './verbs/cancel.ts';
import { checkpoints } from './verbs/checkpoints.ts';
import { codecServer } from './verbs/codec-server.ts';
import { decide } from './verbs/decide.ts';
import { dev } from './verbs/dev.ts';
import { doctor } from './verbs/doctor.ts';
import { inbox } from './verbs/inbox.ts';
import { ls } from './verbs/ls.ts';
import { mcp } from './verbs/mcp.ts';
import { pause } from './verbs/pause.ts';
import { pool } from './verbs/pool.ts';
import { queue } from './verbs/queue.ts';
import { resolve } from './verbs/resolve.ts';
import { resume } from './verbs/resume.ts';
import { schedule } from './verbs/schedule.ts';
import { send } from './verbs/send.ts';
import { serve } from './verbs/serve.ts';
import { setup } from './verbs/setup.ts';
import { show } from './verbs/show.ts';
import { start } from './verbs/start.ts';
import { tail } from './verbs/tail.ts';
import { tree } from './verbs/tree.ts';
import { values } from './verbs/values.ts';
import { versions } from './verbs/versions.ts';
import { wake } from './verbs/wake.ts';
import { webhooks } from './verbs/webhooks.ts';
import { worker } from './verbs/worker.ts';

const GROUPS = [
  {
    heading: 'Run agents:',
    verbs: [dev, worker, versions, serve, mcp, codecServer, archive, webhooks, setup, doctor],
  },
  { heading: 'Talk to sessions:', verbs: [start, send, queue, ls, show, tree, tail, schedule] },
  { heading: 'Decide about tool calls:', verbs: [inbox, decide, resolve] },
  { heading: 'Control sessions:', verbs: [pause, resume, wake, cancel, budget, pool] },
  { heading: 'Read the past and continue from it:', verbs: [checkpoints, values] },
] as const;

const MORE = `
Perdure connects to the first of these: --address, TEMPORAL_ADDRESS, the profile
of the Temporal config file, the dev server of this directory (.perdure),
localhost:7233.

With --json, standard output is one JSON document. Lists, tail, --follow, worker
and dev print one document a line. An error is one line on standard error:
{"error":{"code","message","details","next"}}

Exit codes:
  0    done
  1    failure: a broken agents module, a problem that doctor found, a bug
  2    usage: an unknown verb or option, an invalid argument
  3    not found: no such session, call, checkpoint or agent
  4    refused: already decided, closed, taken, or the arguments have changed
  5    no answer from the server or from a worker
  130  interrupted; what runs until Ctrl-C ends with 0 after it`;

/** Runs the typed command, and returns the exit code. */
export async function runProgram(cli: Cli, argv: readonly string[]): Promise<number> {
  const program = buildProgram(cli);
  // Errors in the arguments are JSON, too.
  cli.terminal.json = argv.includes('--json');
  let code: number = EXIT.ok;
  try {
    await program.parseAsync(argv);
    code = Number(process.exitCode ?? EXIT.ok);
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) return EXIT.ok;
    if (thrown instanceof CommanderError && thrown.code === 'commander.help') return EXIT.usage;
    const error = thrown instanceof CommanderError ? usageError(thrown) : await sessionFailure(cli, thrown);
    code = reportFailure(error, cli.terminal, cli);
  }
  await cli.close().catch(() => undefined);
  return code;
}

function buildProgram(cli: Cli): Command {
  const program = new Command('perdure');
  program
    .description('Agent sessions on Temporal that survive crashes, deploys, people and time.')
    .version(packageJson.version)
    .option('--address <host:port>', 'address of the Temporal server')
    .option('--namespace <name>', 'Temporal namespace (default: TEMPORAL_NAMESPACE, or default)')
    .option(
      '--task-queue <name>',
      'task queue of sessions and workers (default: PERDURE_TASK_QUEUE, or perdure)',
    )
    .option(
      '--data-converter <module>',
      'module with the payload codecs of clients and workers (default: PERDURE_DATA_CONVERTER)',
    )
    .option('--json', 'print results and errors as JSON')
    .exitOverride()
    .configureOutput({ outputError: () => undefined })
    .configureHelp({
      showGlobalOptions: true,
      subcommandTerm: (verb) => [verb.name(), ...verb.registeredArguments.map(argumentTerm)].join(' '),
    })
    .addHelpText('after', MORE)
    .hook('preSubcommand', (_, command) => cli.begin(command.name(), program.opts<GlobalOptions>()))
    .hook('preAction', (_, command) => cli.begin(verbOf(command), program.opts<GlobalOptions>()));
  for (const { heading, verbs } of GROUPS) {
    program.commandsGroup(heading);
    for (const verb of verbs) verb(program, cli);
  }
  return program;
}

function argumentTerm(argument: Argument): string {
  return argument.required ? `<${argument.name()}>` : `[${argument.name()}]`;
}

/** A verb as it is typed, with its group. */
function verbOf(command: Command): string {
  const group = command.parent;
  return group?.parent ? `${group.name()} ${command.name()}` : command.name();
}

function usageError(error: CommanderError): PerdureError {
  const message = error.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ');
  return new PerdureError('INVALID_ARGUMENT', message, { cause: error });
}

/** Converts an error of Temporal's client that no handle has converted. */
async function sessionFailure(cli: Cli, error: unknown): Promise<unknown> {
  if (isPerdureError(error)) return error;
  const { sessionError } = await import('../temporal/errors.ts');
  return sessionError(cli.sessionId ?? '', error);
}

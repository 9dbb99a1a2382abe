import type { ScheduleHandle, ScheduleOverlapPolicy, ScheduleSummary } from '@temporalio/client';
import { type Command, Option } from 'commander';
import { invalid } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import { WORKFLOW } from '../../contract/names.ts';
import { command } from '../../session/commands.ts';
import type { Cli } from '../cli.ts';
import { type BudgetOptions, contextOf, duration, limitsOf, textOf, withBudget } from '../input.ts';
import { clean } from '../terminal.ts';

const OVERLAPS = ['skip', 'buffer-one', 'buffer-all', 'cancel-other', 'terminate-other', 'allow-all'];

interface Options extends BudgetOptions {
  id: string;
  cron?: string[];
  every?: number;
  timezone?: string;
  overlap?: string;
  context?: string;
  by?: string;
}

/** `perdure schedule`: sessions that Temporal's own schedules start. */
export function schedule(program: Command, cli: Cli): void {
  const group = program
    .command('schedule')
    .summary('start sessions on a schedule')
    .description("Start sessions by Temporal's own schedules. Each ends with its answer (--mode task).");
  withBudget(
    group
      .command('create')
      .description('create a schedule')
      .argument('<agent>', 'name of the agent')
      .argument('<message>', 'the first message of each session; - reads standard input')
      .requiredOption('--id <id>', "the schedule's id; sessions are named <id>-<time>")
      .option('--cron <expression...>', "when, such as '0 9 * * MON-FRI'")
      .option('--every <time>', 'when, such as 1h', duration)
      .option('--timezone <name>', 'of --cron, such as Europe/Berlin (default: UTC)')
      .addOption(
        new Option(
          '--overlap <rule>',
          'while the last session runs: skip (default), wait, end it, or start',
        ).choices(OVERLAPS),
      )
      .option('--context <json>', 'context of each session; @file reads a file')
      .option('--by <name>', 'who sends the message (default: $USER)'),
  ).action((agent: string, message: string, options: Options) => create(cli, agent, message, options));
  group
    .command('ls', { isDefault: true })
    .description('list the schedules of sessions, with their next times')
    .action(() => list(cli));
  const acts: [
    name: string,
    description: string,
    done: string,
    act: (to: ScheduleHandle) => Promise<void>,
  ][] = [
    ['run', 'start a session now', 'told to start a session now', (to) => to.trigger()],
    ['pause', 'start no more sessions until it is resumed', 'paused', (to) => to.pause()],
    ['resume', 'go on after a pause', 'resumed', (to) => to.unpause()],
    ['delete', 'delete a schedule; its sessions stay', 'deleted', (to) => to.delete()],
  ];
  for (const [name, description, done, act] of acts) {
    group
      .command(name)
      .description(description)
      .argument('<schedule>', 'id of the schedule')
      .action(async (id: string) => {
        const { client } = await cli.connect();
        await act(client.schedule.getHandle(id)).catch((error: unknown) => {
          throw notFound(id, error);
        });
        cli.terminal.result({ schedule: id, done: name }, () => `${clean(id)} ${done}`);
      });
  }
}

async function create(cli: Cli, agent: string, text: string, options: Options): Promise<void> {
  const { id, cron, every, timezone, overlap } = options;
  if ((cron === undefined) === (every === undefined))
    throw invalid('--cron', 'give either --cron or --every');
  if (timezone !== undefined && cron === undefined) throw invalid('--timezone', 'needs --cron');
  const { scheduleSessions } = await import('../../client/index.ts');
  const { client } = await cli.connect();
  const spec = defined({
    cronExpressions: cron,
    intervals: every === undefined ? undefined : [{ every }],
    timezone,
  });
  const rule = overlap?.toUpperCase().replaceAll('-', '_') as ScheduleOverlapPolicy;
  const given = defined({ context: await contextOf(options.context), budget: limitsOf(options) });
  const handle = await scheduleSessions(client, agent, {
    id,
    message: { text: await textOf(text), by: cli.actor(options.by) },
    spec,
    ...(overlap === undefined ? {} : { policies: { overlap: rule } }),
    ...given,
    taskQueue: cli.taskQueue,
  });
  const { info } = await handle.describe();
  const [next] = info.nextActionTimes;
  const value = { schedule: id, agent, next: next?.toISOString() ?? null, taskQueue: cli.taskQueue };
  cli.terminal.result(
    value,
    () =>
      `${clean(id)} starts a session of ${clean(agent)}, next at ${value.next ?? 'no time'}\n  next: ${command('schedule', 'run', id)}`,
  );
}

async function list(cli: Cli): Promise<void> {
  const { terminal } = cli;
  const { client } = await cli.connect();
  const found: ScheduleSummary[] = [];
  for await (const one of client.schedule.list()) {
    if (one.action?.workflowType === WORKFLOW.session) found.push(one);
  }
  for (const one of found) terminal.item(itemOf(one), () => null);
  if (terminal.json) return;
  const { table } = await import('../render.ts');
  const [head = '', ...lines] = table([
    ['SCHEDULE', 'STATE', 'NEXT', 'LAST SESSION'],
    ...found.map(itemOf).map((one) => [one.schedule, one.state, one.next ?? '-', one.last ?? '-'].map(clean)),
  ]);
  terminal.result({}, () =>
    found.length === 0
      ? 'no schedules\n  next: perdure schedule create --help'
      : [terminal.style('bold', head), ...lines].join('\n'),
  );
}

function itemOf({ scheduleId, state, info }: ScheduleSummary): {
  schedule: string;
  state: 'paused' | 'active';
  next: string | null;
  last: string | null;
} {
  const last = info.recentActions.at(-1)?.action.workflow.workflowId ?? null;
  const next = state.paused ? null : (info.nextActionTimes[0]?.toISOString() ?? null);
  return { schedule: scheduleId, state: state.paused ? 'paused' : 'active', next, last };
}

function notFound(id: string, error: unknown): unknown {
  return error instanceof Error && error.name === 'ScheduleNotFoundError'
    ? invalid('schedule', `there is no schedule ${id}. List them: perdure schedule ls`, error)
    : error;
}

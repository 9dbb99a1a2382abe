import { type Command, InvalidArgumentError, Option } from 'commander';
import { invalid } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import type { PoolPeriod, PoolSetInput, PoolView } from '../../contract/pool.ts';
import type { Cli } from '../cli.ts';
import { amount, count, duration } from '../input.ts';
import { clean } from '../terminal.ts';

/** `none` stands for `null`, which Commander would turn into an empty text. */
type Cap = number | 'none';

interface Options {
  usd?: Cap;
  tokens?: Cap;
  turns?: Cap;
  active?: Cap;
  period?: PoolPeriod | 'none';
  zone?: string;
  by?: string;
}

const CAPS = { usd: 'usd', tokens: 'tokens', turns: 'turns', activeMs: 'active' } as const;

/** `perdure pool`: caps that sessions share. */
export function pool(program: Command, cli: Cli): void {
  program
    .command('pool')
    .summary('show or set caps that sessions share')
    .description(
      'Show what sessions have spent of a pool and hold of it, or set its caps. A session shares the pool that it was ' +
        'started with. Sessions that wait continue if they now have enough.',
    )
    .argument('<pool>', 'id of the pool')
    .option('--usd <dollars>', 'cap on what the models cost; none takes it away', orNone(amount))
    .option('--tokens <count>', 'cap on input plus output tokens', orNone(count))
    .option('--turns <count>', 'cap on model calls', orNone(count))
    .option(
      '--active <time>',
      'cap on the time that model and tool calls take, such as 10m',
      orNone(duration),
    )
    .addOption(
      new Option('--period <period>', 'the caps hold for each day or month').choices([
        'day',
        'month',
        'none',
      ]),
    )
    .option('--zone <name>', 'time zone of the period, such as Europe/Berlin (default: UTC)')
    .option('--by <name>', 'who sets them (default: $USER)')
    .action(async (id: string, { by, active: activeMs, zone, ...options }: Options) => {
      const { terminal } = cli;
      const given = Object.entries(defined({ ...options, activeMs }));
      const input: PoolSetInput = {
        ...Object.fromEntries(given.map(([name, value]) => [name, value === 'none' ? null : value])),
        ...defined({ zone }),
      };
      const sets = Object.keys(input).length > 0;
      if (by !== undefined && !sets) throw invalid('--by', 'needs a cap, --period or --zone');
      const { sessions } = await cli.connect();
      const found = sessions.pool(id);
      const view = sets
        ? await terminal.wait('setting', () => found.set({ ...input, by: cli.actor(by) }))
        : await terminal.wait(`reading ${id}`, () => found.get());
      terminal.result(view, () => poolLines(view));
    });
}

function orNone(read: (text: string) => number): (text: string) => Cap {
  return (text) => {
    if (text === 'none') return text;
    const value = read(text);
    if (value > 0) return value;
    throw new InvalidArgumentError('Write a number above 0, or none.');
  };
}

function poolLines({
  id,
  limits,
  period,
  zone,
  ends,
  spent,
  held,
  sessions,
  waiting,
  known,
}: PoolView): string {
  const each = period === null ? '' : ` each ${period} (${zone}), until ${ends}`;
  const names = Object.keys(CAPS) as (keyof typeof CAPS)[];
  const caps = names.map((cap) => {
    const write = writer(cap);
    const limit = limits[cap];
    return (
      `  ${CAPS[cap].padEnd(10)} ${write(spent[cap])}` +
      (held[cap] > 0 ? ` + ${write(held[cap])} held` : '') +
      (limit === undefined ? '' : ` of ${write(limit)}`)
    );
  });
  const holding = sessions.filter((session) => names.some((cap) => session.held[cap] > 0));
  const usd = writer('usd');
  return [
    `${clean(id)}${each}`,
    ...caps,
    `  sessions   ${known}, ${holding.length} with an allotment, ${waiting.length} waiting`,
    ...holding.map(
      ({ sessionId, held: own }) => `  holds      ${clean(sessionId)}: ${usd(own.usd)}, ${own.tokens} tokens`,
    ),
    ...waiting.map(
      ({ sessionId, need, since }) =>
        `  waits      ${clean(sessionId)}: needs ${usd(need.usd)}, ${need.tokens} tokens, since ${since}`,
    ),
  ].join('\n');
}

function writer(cap: keyof typeof CAPS): (value: number) => string {
  if (cap === 'usd') return (value) => `$${value.toFixed(6).replace(/(\.\d\d\d*?)0+$/, '$1')}`;
  return cap === 'activeMs' ? (value) => `${(value / 1_000).toFixed(1)} s` : String;
}

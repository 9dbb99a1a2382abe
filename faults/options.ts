/** Parses the words after `npm run faults --`, or says which word is wrong. */
import { parseArgs } from 'node:util';
import type { Fixed } from './plan.ts';
import { KINDS, STACKS, type ToolKind } from './story.ts';

/** How many sessions a soak strikes by default. */
const SOAK = 1_000;
/** The most tool calls of a session, and the most workers: more of them show nothing new, and take long. */
const MOST = 16;
/** The most turns of a session if the seed chooses them. */
const DRAWN_TURNS = 2;

const OPTIONS = {
  soak: { type: 'string' },
  seed: { type: 'string' },
  only: { type: 'string' },
  keys: { type: 'string' },
  kinds: { type: 'string' },
  turns: { type: 'string' },
  strike: { type: 'string' },
  stack: { type: 'string' },
  workers: { type: 'string' },
  messages: { type: 'boolean', default: false },
  quiet: { type: 'boolean', default: false },
  'write-table': { type: 'boolean', default: false },
  'write-page': { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

type Flag = 'messages' | 'quiet' | 'write-table' | 'write-page' | 'help';

const HELP_OF: Readonly<Record<keyof typeof OPTIONS, readonly [value: string, text: string]>> = {
  only: ['<points>', 'Some points, or one step of a point: worker-kill@gap,signals'],
  seed: ['<number>', 'The schedule of another run'],
  soak: ['[sessions]', `By chance, until so many sessions have been struck. Default: ${SOAK}`],
  stack: [
    STACKS.join('|'),
    'Temporal over a file, or over PostgreSQL as in docker-compose.yml. Default: dev',
  ],
  workers: ['<number>', 'Worker processes that share the sessions. Default: 1'],
  keys: ['honoured|ignored', 'Whether the service honours idempotency keys. Default: both'],
  kinds: ['<kinds>', `Kinds of tools: ${KINDS.join(',')}`],
  turns: ['<number>', 'Tool calls of a session'],
  strike: ['<number>', 'The turn that is struck, from 1'],
  messages: ['', 'People write to the sessions while the fault is on'],
  quiet: ['', 'Nobody writes to them'],
  'write-table': ['', 'All points with both services, kept for docs/guarantees.md'],
  'write-page': ['', 'Writes that page of the run that is kept, and runs nothing'],
  help: ['', 'Prints this'],
};

const optionLines = Object.entries(HELP_OF).map(([name, [value, text]]) =>
  `  ${`--${name} ${value}`.padEnd(26)} ${text}`.trimEnd(),
);

/** What `--help` prints. */
export const HELP: string = `npm run faults -- [options]

Strikes sessions with every fault at every step of a turn, and trees of sessions whose sub-agents work in the foreground
and in the background. Judges what they claim. docs/guarantees.md lists the points and their steps. Exits with 1 when a
guarantee was broken, or a fault did not land. Ctrl-C ends a run with the table of the stories that were told.

${optionLines.join('\n')}

A run that fails prints the command that tells its story again.`;

export interface LabOptions {
  readonly fixed: Fixed;
  /** How many sessions a soak strikes at random. `null`: every point in turn. */
  readonly soak: number | null;
  readonly writeTable: boolean;
  /** Only write the page, from the stored run. Nothing runs. */
  readonly writePage: boolean;
  readonly help: boolean;
}

/** A word that the lab does not understand. The message says what to write. */
export class OptionError extends Error {}

/** @throws OptionError for the first word that is not understood, or conflicts with another word. */
export function readOptions(words: readonly string[], now: number = Date.now()): LabOptions {
  const values = parsed(words);
  const writeTable = values['write-table'];
  if (writeTable) {
    const narrow = (['only', 'soak', 'keys', 'kinds'] as const).find((name) => values[name] !== undefined);
    if (narrow !== undefined)
      throw new OptionError(`--write-table: the page is of all faults; leave --${narrow} out`);
  }
  const [said, ...rest] = (['messages', 'quiet'] as const).filter((name) => values[name]);
  if (rest.length > 0) throw new OptionError('--messages and --quiet: leave one of them out');
  const turns = count('turns', values.turns, MOST);
  const strike = count('strike', values.strike, turns ?? DRAWN_TURNS);
  const workers = count('workers', values.workers, MOST);
  const fixed: Fixed = {
    seed: number('seed', values.seed, { least: 0, most: 2 ** 31 }) ?? now % 100_000,
    ...(values.only === undefined ? {} : { only: values.only.split(',') }),
    ...(values.keys === undefined
      ? {}
      : { keys: oneOf('keys', values.keys, ['honoured', 'ignored'] as const) }),
    ...(values.kinds === undefined
      ? {}
      : { kinds: values.kinds.split(',').map((kind): ToolKind => oneOf('kinds', kind, KINDS)) }),
    ...(turns === undefined ? {} : { turns }),
    ...(strike === undefined ? {} : { strike }),
    ...(values.stack === undefined ? {} : { stack: oneOf('stack', values.stack, STACKS) }),
    ...(workers === undefined ? {} : { workers }),
    ...(said === undefined ? {} : { messages: said === 'messages' }),
  };
  return {
    fixed,
    soak: count('soak', values.soak, 1_000_000) ?? null,
    writeTable,
    writePage: values['write-page'],
    help: values.help,
  };
}

function parsed(words: readonly string[]): ReturnType<typeof parse> {
  // `--soak` may stand alone, but the parser requires a value: add the default.
  const next = words[words.indexOf('--soak') + 1];
  const alone = words.includes('--soak') && (next === undefined || next.startsWith('--'));
  const args = alone ? words.map((word) => (word === '--soak' ? `--soak=${SOAK}` : word)) : [...words];
  try {
    return parse(args);
  } catch (error) {
    throw new OptionError(error instanceof Error ? error.message : String(error));
  }
}

function parse(args: string[]): {
  [name in Exclude<keyof typeof OPTIONS, Flag>]?: string;
} & { [name in Flag]: boolean } {
  return parseArgs({ args, options: OPTIONS }).values;
}

function count(name: string, given: string | undefined, most: number): number | undefined {
  return number(name, given, { least: 1, most });
}

function number(
  name: string,
  given: string | undefined,
  { least, most }: { least: number; most: number },
): number | undefined {
  if (given === undefined) return undefined;
  const value = /^\d+$/.test(given) ? Number(given) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new OptionError(`--${name} ${given}: write a whole number from ${least} to ${most}`);
}

function oneOf<T extends string>(name: string, given: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === given);
  if (found !== undefined) return found;
  throw new OptionError(`--${name} ${given}: write ${choices.join(' or ')}`);
}

/** Reads the options of `npm run bench` before anything is compiled, so that a mistake costs nothing. */
import { parseArgs } from 'node:util';
import { PEERS } from './peers/catalogue.ts';

/** The measures, in the order in which they are taken. */
export const MEASURES = [
  'turns',
  'bytes',
  'actions',
  'fold',
  'server',
  'recovery',
  'gap',
  'send',
  'stream',
  'console',
  'saver',
  'listing',
  'langgraph',
  'start',
  'memory',
  'waiting',
  'rates',
  'trees',
  'mcp',
  'pool',
  'cold',
  'values',
  'long',
  'peers',
] as const;
export type MeasureName = (typeof MEASURES)[number];

/** Enough for the session to continue in a new run twice. */
const FEWEST_TURNS = 120;

export const USAGE: string = `npm run bench                        all measures; what they came to is kept in bench/results
npm run bench -- --only turns,bytes  some of ${MEASURES.join(', ')}
npm run bench -- --quick             fewer rounds, to see that it works; not kept
npm run bench -- --only peers --peers perdure,dbos
                                     of the comparison some; not kept. There are
                                     ${PEERS.map(({ id }) => id).join(', ')}
npm run bench -- --only long --turns 1000
                                     a shorter session than one of 5,000 turns; not kept
npm run bench -- --keep-anyway       keeps a run also when others kept the machine busy
npm run bench -- --write-docs        measures nothing, writes the docs from the runs that are kept`;

/** The parsed options. */
export interface Options {
  help: boolean;
  writeDocs: boolean;
  /** `all`, or the measures. Part of the result file's name. */
  what: string;
  only: readonly MeasureName[];
  /** `undefined` means all. */
  peers: readonly string[] | undefined;
  quick: boolean;
  /** Turns of the session that `long` measures. `undefined`: all. */
  turns: number | undefined;
  keepAnyway: boolean;
}

/** @throws Error with one line that says what is wrong. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', short: 'h', default: false },
      only: { type: 'string' },
      peers: { type: 'string' },
      quick: { type: 'boolean', default: false },
      turns: { type: 'string' },
      'keep-anyway': { type: 'boolean', default: false },
      'write-docs': { type: 'boolean', default: false },
    },
  });
  const only = some('only', values.only, MEASURES) ?? MEASURES;
  const ids = PEERS.map(({ id }) => id);
  const peers = some('peers', values.peers, ids);
  if (peers !== undefined && !only.includes('peers'))
    throw new Error('--peers: only the measure peers has some; write --only peers');
  const turns = values.turns === undefined ? undefined : Number(values.turns);
  if (turns !== undefined && !(Number.isInteger(turns) && turns >= FEWEST_TURNS))
    throw new Error(`--turns ${values.turns}: write a whole number from ${FEWEST_TURNS}`);
  if (turns !== undefined && !only.includes('long'))
    throw new Error('--turns: only the measure long has a length; write --only long');
  return {
    help: values.help,
    writeDocs: values['write-docs'],
    what: values.only === undefined ? 'all' : only.join('-'),
    only,
    peers,
    quick: values.quick,
    turns,
    keepAnyway: values['keep-anyway'],
  };
}

function some<T extends string>(
  option: string,
  given: string | undefined,
  choices: readonly T[],
): T[] | undefined {
  return given?.split(',').map((name) => {
    const found = choices.find((choice) => choice === name);
    if (found === undefined)
      throw new Error(`--${option} ${name}: there is no such one; write some of ${choices.join(',')}`);
    return found;
  });
}

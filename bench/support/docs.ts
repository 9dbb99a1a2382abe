/** Writes the parts of the docs that show stored runs: the tables of the comparison, and its chart. */
import { readFile, writeFile } from 'node:fs/promises';
import { PEERS, type PeerSpec } from '../peers/catalogue.ts';
import { type Bar, drawChart } from './chart.ts';
import { type Line, verdict } from './report.ts';
import { keptResults, lineOf, newestResults, type Results } from './results.ts';

const PAGE = 'docs/performance.md';
const CHART = 'docs/performance.svg';
const LENGTHS = [10, 50, 200, 500];
/** The measures that are compared with a floor, in the order of the page. */
const OWN_MEASURES = [
  'turns',
  'bytes',
  'actions',
  'recovery',
  'gap',
  'send',
  'stream',
  'console',
  'trees',
  'mcp',
  'pool',
  'rates',
  'server',
  'start',
  'memory',
  'waiting',
  'cold',
  'long',
  'values',
  'fold',
  'saver',
  'listing',
  'langgraph',
];

/** Writes these parts. @returns their paths. @throws as {@link docsOf}. */
export async function writeDocs(): Promise<string[]> {
  const docs = await docsOf();
  for (const [path, text] of docs) await writeFile(path, text);
  return [...docs.keys()];
}

/**
 * The docs for the newest stored run of each measure, by path.
 *
 * @throws Error when the page has lost its marks, or no run of `peers` is stored.
 */
export async function docsOf(): Promise<Map<string, string>> {
  const results = await newestResults('peers');
  let page = await readFile(PAGE, 'utf8');
  for (const [mark, text] of [
    ['floor', await floorTable()],
    ['peers', tables(results)],
  ] as const) {
    const marked = new RegExp(`(<!-- ${mark}:begin[^>]*-->\\n)[\\s\\S]*(<!-- ${mark}:end -->)`);
    if (!marked.test(page)) throw new Error(`${PAGE} has no <!-- ${mark}:begin --> and <!-- ${mark}:end -->`);
    page = page.replace(marked, (_, begin: string, end: string) => begin + text + end);
  }
  return new Map([
    [CHART, chart(results)],
    [PAGE, page],
  ]);
}

const SAVERS: Record<string, string> = {
  ours: 'our saver',
  sqlite: 'its SQLite saver',
  postgres: 'its PostgreSQL saver',
};

/** Each of our own measures, from its newest stored run. */
async function floorTable(): Promise<string> {
  const rows: string[][] = [];
  const runs: Results[] = [];
  for (const measure of OWN_MEASURES) {
    const [results] = await keptResults(measure);
    if (results === undefined) continue;
    if (!runs.some(({ at }) => at === results.at)) runs.push(results);
    const run = runs.findIndex(({ at }) => at === results.at) + 1;
    for (const line of results.results) {
      if (line.measure !== measure) continue;
      const what =
        line.peer === undefined
          ? line.what
          : `LangGraph.js on ${SAVERS[line.peer] ?? line.peer}: ${line.what}`;
      rows.push([what, figure(line), ...judged(line), medians(line), line.note ?? '', String(run)]);
    }
  }
  const head = runs.map((run, i) => `${i + 1}. ${takenOn(run)}.\n`).join('');
  return `Runs:\n\n${head}\n${table(['', 'figure', 'asked', ':', ':medians', ':how', 'run'], rows)}`;
}

/** The columns of a target: the target, and whether it is met. */
function judged(line: Line): [string, string] {
  const { target } = line;
  if (target === undefined) return ['', ''];
  const [sign, bound] = 'atMost' in target ? ['≤', target.atMost] : ['≥', target.atLeast];
  return [`${sign} ${bound}`, verdict(line) === 'met' ? 'met' : '**missed**'];
}

function figure({ value, unit }: Line): string {
  if (!Number.isFinite(value)) return '–';
  const digits = Number.isInteger(value) ? 0 : value < 10 ? 2 : 0;
  return `${value.toFixed(digits)} ${unit}`.trimEnd();
}

function medians({ of = {} }: Line): string {
  return Object.entries(of)
    .map(([name, value]) => `${name} ${number(value)}`)
    .join(', ');
}

/** When and on which machine a run was taken, and the share that others used. */
function takenOn({ at, machine, results }: Results): string {
  const others = Math.max(...results.map((line) => line.others ?? Number.NaN));
  const busy = Number.isFinite(others) ? `, others had at most ${(others * 100).toFixed(0)} % of it` : '';
  return [
    `Taken ${at.slice(0, 16).replace('T', ' ')} on ${machine.cores} cores (${machine.cpu}, ${machine.memoryGb} GB, ${machine.os}), `,
    `load before ${machine.loadBefore}${busy}; Perdure ${machine.perdure} (${machine.commit}), `,
    `Temporal server ${machine.temporalServer}, SDK ${machine.temporalSdk}, Node ${machine.node}`,
  ].join('');
}

/** The peers that have a figure of one of these kinds. */
function present(results: Results, ...kinds: string[]): PeerSpec[] {
  return PEERS.filter(({ id }) => kinds.some((kind) => lineOf(results, id, kind) !== undefined));
}

function number(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return '–';
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return value.toFixed(value >= 10 ? 0 : 1);
}

const kilobytes = (line: Line | undefined): string =>
  line === undefined
    ? '–'
    : number(line.value / 1_024) +
      (line.of?.['counted'] === undefined ? '' : ` (${number(line.of['counted'] / 1_024)})`);

/** A Markdown table. The first column is text, as are columns with a `:` before their head. */
function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
  const isText = (head: string, i: number): boolean => i === 0 || head.startsWith(':');
  return (
    line(heads.map((head) => head.replace(/^:/, ''))) +
    line(heads.map((head, i) => (isText(head, i) ? '---' : '--:'))) +
    rows.map(line).join('')
  );
}

function tables(results: Results): string {
  const { machine } = results;
  const peers = present(results, 'alone', 'at20');
  const singles = present(results, 'alone');
  const name = ({ title, package: from }: PeerSpec): string => {
    const version = from === undefined ? undefined : machine.compared?.[from];
    return version === undefined ? title : `${title} ${version}`;
  };
  const speed = peers.map((spec) => {
    const [alone, at20, at200] = ['alone', 'at20', 'at200'].map((what) => lineOf(results, spec.id, what));
    return [
      name(spec),
      number(alone?.value),
      number(at20?.value),
      number(at200?.value),
      number(at20?.of?.['cpuMs']),
      number(at20?.of?.['workerCpuMs']),
      number(at200?.of?.['mb']),
    ];
  });
  const stored = singles.map((spec) => [
    name(spec),
    ...LENGTHS.map((turns) => kilobytes(lineOf(results, spec.id, `bytes${turns}`))),
    spec.note,
  ]);
  const killed = singles.map((spec) => {
    const line = lineOf(results, spec.id, 'killed');
    return [
      name(spec),
      number((line?.value ?? Number.NaN) / 1_000),
      number((line?.of?.['beyondReadyMs'] ?? Number.NaN) / 1_000),
      String(line?.of?.['toolsRepeated'] ?? '–'),
      String(line?.of?.['modelsRepeated'] ?? '–'),
    ];
  });
  const told = results.results
    .filter(({ what }) => what === 'failed' || what === 'left out')
    .map(({ peer, what, note }) => {
      const title = PEERS.find(({ id }) => id === peer)?.title ?? peer ?? '';
      return `- ${title}${what === 'left out' ? ' is left out' : ''}: ${note ?? ''}\n`;
    });
  const targets = results.results
    .filter(({ measure, peer, target }) => measure === 'peers' && peer === undefined && target !== undefined)
    .map((line) => [line.what, figure(line), ...judged(line)]);
  const overPostgres = peers.some(({ store }) => store === 'temporal-postgres');
  return [
    takenOn(results),
    Object.entries(machine.compared ?? {})
      .filter(
        ([key]) => ['postgresql', '@restatedev/restate-server'].includes(key) || key.startsWith('node-'),
      )
      .map(([key, version]) => `, ${key} ${version}`)
      .join(''),
    '.\n\n',
    table(
      [
        '',
        'ms a turn, 1 session',
        'turns/s, 20 sessions',
        'turns/s, 200 sessions',
        'CPU ms a turn, whole stack',
        'of it the worker',
        'MB resident, whole stack, at 200',
      ],
      speed,
    ),
    overPostgres
      ? '\nOver PostgreSQL: the same programs on the server of `docker-compose.yml` and its database, run from their binaries. Four workers are four processes.\n'
      : '',
    '\nKB stored a turn, in one session of so many turns:\n\n',
    table(['', ...LENGTHS.map((turns) => `${turns} turns`), ':why'], stored),
    '\nAfter SIGKILL of the worker in the middle of a tool call, its successor started at once on the same machine:\n\n',
    table(
      ['', 's until it goes on', 'of it after its start', 'tool calls repeated', 'model calls repeated'],
      killed,
    ),
    told.length === 0 ? '' : `\nWhat did not end as asked:\n\n${told.join('')}`,
    targets.length === 0
      ? ''
      : `\nAgainst what is asked of Perdure:\n\n${table(['', 'figure', 'asked', ':'], targets)}`,
  ].join('');
}

function chart(results: Results): string {
  const peers = present(results, 'alone');
  const length =
    LENGTHS.findLast((turns) => peers.some(({ id }) => lineOf(results, id, `bytes${turns}`))) ?? 0;
  const bars = (what: string, label: (line: Line) => string, share = 1): Bar[] =>
    peers.map(({ id }) => {
      const line = lineOf(results, id, what);
      return line === undefined
        ? { value: undefined, label: 'did not get there' }
        : { value: line.value * share, label: label(line) };
    });
  return drawChart({
    title: 'Perdure and what a user would pick instead: storage, recovery, time of a turn',
    rows: peers.map(({ id, title }) => ({ label: title, ours: id.startsWith('perdure') })),
    panels: [
      {
        title: 'Stored a turn',
        subtitle: `in a session of ${length} turns; logarithmic`,
        log: true,
        bars: bars(`bytes${length}`, ({ value }) => `${number(value / 1_024)} KB`, 1 / 1_024),
      },
      {
        title: 'Back after SIGKILL in a tool call',
        subtitle: 'and whether the tool ran again',
        bars: bars(
          'killed',
          ({ value, of }) =>
            `${number(value / 1_000)} s, ran ${of?.['toolsRepeated'] === 0 ? 'once' : 'again'}`,
        ),
      },
      {
        title: 'Time of a turn',
        subtitle: 'one session, model and tool that answer at once',
        bars: bars('alone', ({ value }) => `${number(value)} ms`),
      },
    ],
    foot: `One model call and one tool call a turn, 1 KB each, all durable. ${results.machine.cores} cores, ${results.at.slice(0, 10)}. npm run bench -- --only peers`,
  });
}

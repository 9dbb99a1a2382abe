/** A session of thousands of turns, which continues in new runs by itself. */
import { randomUUID } from 'node:crypto';
import { jsonSize } from '../../src/contract/json.ts';
import { SIGNAL } from '../../src/contract/names.ts';
import type { SessionState } from '../../src/index.ts';
import { TemporalSaver } from '../../src/index.ts';
import { readStartInput } from '../../src/temporal/index.ts';
import type { Context, Measure } from '../support/context.ts';
import { jobText } from '../support/job.ts';
import { type Measured, startMeasured } from '../support/processes.ts';
import type { Line } from '../support/report.ts';
import { interleave, median, medianRatio } from '../support/stats.ts';
import { storedBy } from '../support/stored.ts';
import { until } from '../support/until.ts';

const MB = 2 ** 20;
const TURNS = { full: 5_000, quick: 160 } as const;
/** Tokens of the agent's context window: as many as most models have, and few in a quick run. */
const WINDOW = { full: 200_000, quick: 20_000 } as const;
/** The default number of turns after which a session continues in a new run. */
const RUN_TURNS = 50;
/** Turns of a session that stays in one run. */
const WHOLE_TURNS = 1_000;
const SHORT_TURNS = 10;
const GET_TURNS = 200;
/** How long the session may take for all its turns. */
const WITHIN_MS = 3_600_000;

/** A worker process that is killed and restarted. */
class Crew {
  readonly #start: () => Measured;
  worker: Measured;

  constructor(start: () => Measured) {
    this.#start = start;
    this.worker = start();
  }

  /** Kills the worker with SIGKILL and starts another at once. */
  async replace(): Promise<void> {
    await this.worker.kill();
    this.worker = this.#start();
  }

  async rss(question: number): Promise<number> {
    this.worker.child.send(question);
    return (await this.worker.said('memory', ({ turn }) => turn === question)).rss ?? Number.NaN;
  }
}

type Agent = 'bench' | 'whole' | 'endless';

/** When a job's model was asked, by turn. */
async function askedAt({ worker }: Crew, id: string, turn: number): Promise<number> {
  return (await worker.said('model', (said) => said.of === id && said.turn === turn, WITHIN_MS)).at;
}

/** Milliseconds from one model request to the next. */
function turnTimes({ worker }: Crew, id: string): number[] {
  const times: number[] = [];
  for (const { of, turn = 0, at } of worker.all('model')) if (of === id && turn > 0) times[turn] ??= at;
  return times.slice(2).map((time, i) => time - (times[i + 1] ?? time));
}

/** The first and the last turns, without the very first, which loads what is loaded only once. */
function ends(turnMs: readonly number[], count: number): Record<'first' | 'last', number[]> {
  return { first: turnMs.slice(1, count + 1), last: turnMs.slice(-count) };
}

/** The share of cached tokens in all prompts from the first summary on, including the prompts for summaries. */
function cachedShare({ worker }: Crew, id: string): number {
  const asked = worker.all('model').filter(({ of }) => of === id);
  const since = asked.slice(asked.findIndex(({ turn }) => turn === 0) + 1);
  const sum = (key: 'tokens' | 'cachedTokens'): number =>
    since.reduce((all, said) => all + (said[key] ?? 0), 0);
  return sum('cachedTokens') / sum('tokens');
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

export const long: Measure = async (context) => {
  const turns = context.turns ?? TURNS[context.quick ? 'quick' : 'full'];
  const { address } = await context.server();
  const { client, sessions } = await context.scene();
  const taskQueue = `long-${randomUUID()}`;
  const journal = await context.temporaryDir();
  const window = String(WINDOW[context.quick ? 'quick' : 'full']);
  const crew = new Crew(() =>
    startMeasured('long-worker', [address, taskQueue, journal, window], ['--expose-gc']),
  );
  try {
    await crew.worker.said('ready');
    const begin = async (agent: Agent, count: number): Promise<string> => {
      const id = randomUUID();
      await sessions.start(agent, { id, message: jobText({ id, turns: count, tool: 'mutate' }), taskQueue });
      return id;
    };
    const end = async (id: string, count: number): Promise<void> => {
      await askedAt(crew, id, count + 1);
      await until(async () => (await sessions.get(id).state()).phase === 'idle');
    };
    const run = async (agent: Agent, count: number): Promise<string> => {
      const id = await begin(agent, count);
      await end(id, count);
      return id;
    };

    const some = Math.min(500, Math.floor(turns / 4));
    const id = await begin('bench', turns);
    await askedAt(crew, id, some);
    const early = await crew.rss(1);
    await end(id, turns);
    const late = await crew.rss(2);
    const turnMs = turnTimes(crew, id);
    const { first, last } = ends(turnMs, some);
    const cached = cachedShare(crew, id);
    const endless = ends(turnTimes(crew, await run('endless', turns)), some);
    const rolls = turnMs.filter((_, i) => (i + 1) % RUN_TURNS === 0);
    const others = turnMs.filter((_, i) => (i + 1) % RUN_TURNS !== 0);

    const wholeTurns = Math.min(WHOLE_TURNS, turns);
    const whole = await storedBy(client, await run('whole', wholeTurns));
    const stored = await storedBy(client, id);
    const { carried } = (await readStartInput(client, id)) as { carried: SessionState };

    const rounds = context.quick ? 2 : 5;
    const reads = await reading(context, id, await run('bench', Math.min(GET_TURNS, turns)), rounds);
    const short = await run('bench', SHORT_TURNS);
    const restarts = await restarting(
      context,
      crew,
      { long: [id, turns], short: [short, SHORT_TURNS] },
      rounds,
    );
    const line = (what: string, value: number, atMost: number, more: Partial<Line> = {}): Line => ({
      measure: 'long',
      what,
      value,
      unit: 'x',
      target: { atMost },
      ...more,
    });
    return [
      line(
        `wall time of a turn, the last ${some} of ${turns} against the first ${some}`,
        mean(last) / mean(first),
        1.1,
        {
          of: { ms: mean(last), firstMs: mean(first) },
          note: `means, with the rollovers; a tool of 10 ms`,
        },
      ),
      line(
        'the same without summaries: all messages in each prompt',
        mean(endless.last) / mean(endless.first),
        1.1,
        {
          of: { ms: mean(endless.last), firstMs: mean(endless.first) },
          note: 'the agent has contextWindow: false',
        },
      ),
      line('prompt tokens that were in the cache, from the first summary on', cached, 0.99, {
        unit: '',
        target: { atLeast: 0.99 },
        note: `a window of ${window} tokens; the model counts the tokens, and finds prompts in its cache, as providers do`,
      }),
      line(
        'bytes of a turn over all runs and pieces, against a session that stays in one run',
        stored.bytes / turns / (whole.bytes / wholeTurns),
        1.5,
        {
          of: { bytes: stored.bytes / turns, wholeBytes: whole.bytes / wholeTurns, runs: stored.runs },
          note: `the one run has ${wholeTurns} turns`,
        },
      ),
      line('workflows that the session keeps open, itself included', stored.open, 20, { unit: '' }),
      line('state that the last run began with', jsonSize(carried), 262_144, { unit: 'bytes' }),
      line('one rollover, against a turn', (median(rolls) - median(others)) / median(others), 2, {
        of: { ms: median(rolls) - median(others), turnMs: median(others) },
      }),
      line(`worker's memory after the last turn, against that after ${some}`, late / early, 1.2, {
        of: { mb: late / MB, earlyMb: early / MB },
      }),
      line(
        `\`get\` of the latest after ${turns} turns, against ${Math.min(GET_TURNS, turns)}`,
        medianRatio(reads.long, reads.short),
        1.5,
        {
          of: { ms: median(reads.long), shortMs: median(reads.short) },
          samples: { ms: reads.long, shortMs: reads.short },
          note: 'by a saver that has not read it before',
        },
      ),
      line(
        `worker killed after ${turns} turns: until the model is asked again, against ${SHORT_TURNS}`,
        medianRatio(restarts.long, restarts.short),
        1.2,
        {
          of: { ms: median(restarts.long), shortMs: median(restarts.short) },
          samples: { ms: restarts.long, shortMs: restarts.short },
          note: 'with the start of the next worker',
        },
      ),
    ];
  } finally {
    await crew.worker.kill();
  }
};

async function reading(
  context: Context,
  id: string,
  short: string,
  rounds: number,
): Promise<Record<'long' | 'short', number[]>> {
  const { client } = await context.scene();
  const get = async (session: string): Promise<number> => {
    const started = performance.now();
    await new TemporalSaver(client).get(session);
    return performance.now() - started;
  };
  const arms = { long: () => get(id), short: () => get(short) };
  await interleave(1, arms);
  return interleave(rounds, arms);
}

/** Milliseconds from a kill of the worker until the model is asked for the answer to a message. */
async function restarting<NAME extends string>(
  context: Context,
  crew: Crew,
  jobs: Record<NAME, [id: string, turns: number]>,
  rounds: number,
): Promise<Record<NAME, number[]>> {
  const { client, sessions } = await context.scene();
  const arm =
    ([id, turns]: [string, number]) =>
    async (round: number): Promise<number> => {
      const started = performance.now();
      const replaced = crew.replace();
      await client.workflow.getHandle(id).signal(SIGNAL.send, { text: 'Go on.' });
      await replaced;
      // After the job's own last answer, each round has one answer.
      const asked = await askedAt(crew, id, turns + 2 + round);
      await until(async () => (await sessions.get(id).state()).phase === 'idle');
      return asked - started;
    };
  const names = Object.keys(jobs) as NAME[];
  return interleave(
    rounds,
    Object.fromEntries(names.map((name) => [name, arm(jobs[name])])) as Record<NAME, ReturnType<typeof arm>>,
  );
}

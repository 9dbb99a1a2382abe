/** The same work on Perdure, on a bare workflow, and on what a user would pick instead; see `bench/peers`. */
import { PEERS } from '../peers/catalogue.ts';
import { type Bytes, bytes, type Recovery, recovery, type Speed, speed } from '../peers/figures.ts';
import { PeerProcess, type Prepared, prepare } from '../peers/process.ts';
import { Stack } from '../peers/stack.ts';
import { canTell } from '../peers/usage.ts';
import type { Context, Measure } from '../support/context.ts';
import type { Line } from '../support/report.ts';
import { median, medianRatio } from '../support/stats.ts';

/** Loads and rounds, so that the whole takes a quarter of an hour on two cores. */
const PLAN = {
  full: {
    loads: {
      alone: { sessions: 1, turns: 40, rounds: 5 },
      at20: { sessions: 20, turns: 10, rounds: 3 },
      at200: { sessions: 200, turns: 3, rounds: 2 },
    },
    lengths: [10, 50, 200, 500],
    recoveries: 3,
  },
  quick: {
    loads: {
      alone: { sessions: 1, turns: 15, rounds: 2 },
      at20: { sessions: 20, turns: 4, rounds: 1 },
      at200: { sessions: 200, turns: 1, rounds: 1 },
    },
    lengths: [10, 50],
    recoveries: 1,
  },
} as const;

type LoadName = keyof (typeof PLAN)['full']['loads'];

/** A peer, what was measured of it, and why something was not. */
interface Entry extends Prepared {
  process: PeerProcess;
  speeds: Record<LoadName, Speed[]>;
  bytes: Map<number, Bytes>;
  recoveries: Recovery[];
  failures: string[];
}

/** Those that can run here, each warmed up; what says why another cannot. */
async function open(context: Context, stack: Stack): Promise<{ entries: Entry[]; leftOut: Line[] }> {
  const entries: Entry[] = [];
  const leftOut: Line[] = [];
  for (const spec of PEERS.filter(({ id }) => context.peers?.includes(id) ?? true)) {
    console.error(`  ${spec.title} …`);
    let process: PeerProcess | undefined;
    try {
      const prepared = await prepare(spec, stack, context);
      process = new PeerProcess(prepared);
      context.onClose(process.kill.bind(process));
      await process.said('ready');
      await speed(prepared, process, { sessions: 3, turns: 10 });
      entries.push({
        ...prepared,
        process,
        speeds: { alone: [], at20: [], at200: [] },
        bytes: new Map(),
        recoveries: [],
        failures: [],
      });
    } catch (error) {
      const note = error instanceof Error ? error.message : String(error);
      console.error(`  ${spec.title} is left out: ${note}`);
      leftOut.push({ measure: 'peers', what: 'left out', peer: spec.id, value: 0, unit: '', note });
      await process?.kill();
    }
  }
  return { entries, leftOut };
}

/** Takes a sample; a failure is a finding about the peer, and is told with its figures. */
async function take(entry: Entry, what: string, sample: () => Promise<void>): Promise<void> {
  try {
    await sample();
  } catch (error) {
    const reason = `${what}: ${error instanceof Error ? error.message : String(error)}`;
    console.error(`  ${entry.spec.title}: ${reason}`);
    entry.failures.push(reason);
  }
}

/** Several workers are for many sessions: in all else they are as one. */
function isMany({ spec }: Entry): boolean {
  return spec.workers !== undefined;
}

/** Each load in rounds, each round starting with another peer. */
async function takeSpeeds(entries: readonly Entry[], quick: boolean): Promise<void> {
  const { loads } = PLAN[quick ? 'quick' : 'full'];
  for (const name of Object.keys(loads) as LoadName[]) {
    console.error(`  ${name} …`);
    const { rounds, ...load } = loads[name];
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < entries.length; i++) {
        const entry = entries[(round + i) % entries.length];
        if (entry === undefined || (isMany(entry) && load.sessions === 1)) continue;
        await take(entry, `${load.sessions} sessions at once`, async () => {
          entry.speeds[name].push(await speed(entry, entry.process, load));
        });
      }
    }
  }
}

function speedLines(entry: Entry, quick: boolean): Line[] {
  const { loads } = PLAN[quick ? 'quick' : 'full'];
  return (Object.keys(loads) as LoadName[]).flatMap((name): Line[] => {
    const samples = entry.speeds[name];
    if (samples.length === 0) return [];
    const { sessions, turns, rounds } = loads[name];
    const all = (key: keyof Speed): number[] => samples.map((sample) => sample[key]);
    const of = (key: keyof Speed): number => median(all(key));
    const used = canTell
      ? {
          cpuMs: of('workerCpuMs') + of('serverCpuMs'),
          workerCpuMs: of('workerCpuMs'),
          serverCpuMs: of('serverCpuMs'),
          mb: of('workerMb') + of('serverMb'),
          workerMb: of('workerMb'),
          serverMb: of('serverMb'),
        }
      : {};
    return [
      {
        measure: 'peers',
        what: name,
        peer: entry.spec.id,
        value: name === 'alone' ? of('turnMs') : of('turnsPerSecond'),
        unit: name === 'alone' ? 'ms a turn' : 'turns/s',
        of: { ...(isMany(entry) ? {} : { turnMs: of('turnMs') }), ...used },
        samples: {
          ...(isMany(entry) ? {} : { turnMs: all('turnMs') }),
          turnsPerSecond: all('turnsPerSecond'),
        },
        note: `${rounds} rounds of ${sessions} x ${turns} turns, interleaved`,
      },
    ];
  });
}

function byteLines(entry: Entry): Line[] {
  return [...entry.bytes].map(([turns, { stored, counted }]) => ({
    measure: 'peers',
    what: `bytes${turns}`,
    peer: entry.spec.id,
    value: stored,
    unit: 'bytes a turn',
    ...(counted === undefined ? {} : { of: { counted } }),
  }));
}

function recoveryLines({ spec, recoveries }: Entry): Line[] {
  if (recoveries.length === 0) return [];
  const all = (key: keyof Recovery): number[] => recoveries.map((sample) => sample[key]);
  const beyond = recoveries.map(({ goOnMs, readyMs }) => goOnMs - readyMs);
  return [
    {
      measure: 'peers',
      what: 'killed',
      peer: spec.id,
      value: median(all('goOnMs')),
      unit: 'ms to go on',
      of: {
        readyMs: median(all('readyMs')),
        beyondReadyMs: median(beyond),
        toolsRepeated: Math.max(...all('toolsRepeated')),
        modelsRepeated: Math.max(...all('modelsRepeated')),
      },
      samples: { goOnMs: all('goOnMs'), readyMs: all('readyMs') },
    },
  ];
}

/** What is promised of ours against the floor and against those that store whole prompts. */
function targetLines(entries: readonly Entry[]): Line[] {
  const byId = new Map(entries.map((entry) => [entry.spec.id, entry]));
  const [ours, fast, floor] = ['perdure', 'perdure-fast', 'floor'].map((id) => byId.get(id));
  const lines: Line[] = [];
  const add = (what: string, value: number, target: NonNullable<Line['target']>): void => {
    if (Number.isFinite(value)) lines.push({ measure: 'peers', what, value, unit: 'x', target });
  };
  const against = (
    entry: Entry | undefined,
    base: Entry | undefined,
    name: LoadName,
    key: keyof Speed,
  ): number => {
    const [all = [], of = []] = [entry, base].map((each) => each?.speeds[name].map((speed) => speed[key]));
    return all.length === 0 || all.length !== of.length ? Number.NaN : medianRatio(all, of);
  };
  for (const [entry, most, tool] of [
    [ours, 1.1, 'remote tool'],
    [fast, 0.75, 'fast tool'],
  ] as const) {
    add(`turn with a ${tool} against the floor, 1 session`, against(entry, floor, 'alone', 'turnMs'), {
      atMost: most,
    });
    add(
      `turn with a ${tool} against the floor, 20 sessions`,
      1 / against(entry, floor, 'at20', 'turnsPerSecond'),
      { atMost: most },
    );
    add(`CPU of the worker, ${tool}, against the bare one`, against(entry, floor, 'at20', 'workerCpuMs'), {
      atMost: 1.5,
    });
  }
  const size = (entry: Entry | undefined, key: keyof Bytes): number =>
    entry?.bytes.get(200)?.[key] ?? Number.NaN;
  add('history bytes a turn against the floor, 200 turns', size(ours, 'counted') / size(floor, 'counted'), {
    atMost: 0.9,
  });
  for (const entry of entries) {
    if (entry.spec.wholePrompts !== true) continue;
    add(
      `stored bytes a turn of ${entry.spec.id} against ours, 200 turns`,
      size(entry, 'stored') / size(ours, 'stored'),
      { atLeast: 100 },
    );
  }
  return lines;
}

/** Peers that cannot run here say why and are left out. */
export const peers: Measure = async (context) => {
  const { lengths, recoveries } = PLAN[context.quick ? 'quick' : 'full'];
  const stack = new Stack(context);
  const { entries, leftOut } = await open(context, stack);
  await takeSpeeds(entries, context.quick);
  console.error('  bytes …');
  const singles = entries.filter((entry) => !isMany(entry));
  for (const entry of singles) {
    for (const turns of lengths) {
      await take(entry, `a session of ${turns} turns`, async () => {
        entry.bytes.set(turns, await bytes(entry, entry.process, turns));
      });
    }
  }
  console.error('  killed …');
  for (const entry of entries) await entry.process.kill();
  for (let round = 0; round < recoveries; round++) {
    for (const entry of singles) {
      await take(entry, 'killed in a tool call', async () => {
        entry.recoveries.push(await recovery(entry));
      });
    }
  }
  for (const versions of [stack.versions, ...entries.map((entry) => entry.versions)]) {
    Object.assign(context.versions, versions);
  }
  return [
    ...leftOut,
    ...entries.flatMap((entry) => [
      ...speedLines(entry, context.quick),
      ...byteLines(entry),
      ...recoveryLines(entry),
      ...entry.failures.map(
        (note): Line => ({ measure: 'peers', what: 'failed', peer: entry.spec.id, value: 0, unit: '', note }),
      ),
    ]),
    ...targetLines(entries),
  ];
};

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
      at20: { sessions: 20, turns: 15, rounds: 3 },
      at200: { sessions: 200, turns: 4, rounds: 3 },
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

/** Each load in rounds, each round starting with another peer. */
async function takeSpeeds(entries: readonly Entry[], quick: boolean): Promise<void> {
  const { loads } = PLAN[quick ? 'quick' : 'full'];
  for (const name of Object.keys(loads) as LoadName[]) {
    console.error(`  ${name} …`);
    const { rounds, ...load } = loads[name];
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < entries.length; i++) {
        const entry = entries[(round + i) % entries.length];
        if (entry === undefined) continue;
        await take(entry, `${load.sessions} sessions at once`, async () => {
          entry.speeds[name].push(await speed(entry, entry.process, load));
        });
      }
    }
  }
}

const speedLines = (entry: Entry, floor: Entry | undefined, quick: boolean): Line[] => {
  const { loads } = PLAN[quick ? 'quick' : 'full'];
  const ours = entry.spec.at === floor?.spec.at ? undefined : floor;
  return (Object.keys(loads) as LoadName[]).flatMap((name): Line[] => {
    const samples = entry.speeds[name];
    if (samples.length === 0) return [];
    const { sessions, turns, rounds } = loads[name];
    const of = (key: keyof Speed): number => median(samples.map((sample) => sample[key]));
    const against = (key: keyof Speed): number =>
      ours === undefined || ours.speeds[name].length !== samples.length
        ? Number.NaN
        : medianRatio(
            samples.map((sample) => sample[key]),
            ours.speeds[name].map((sample) => sample[key]),
          );
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
    const ratios = Object.entries({
      turnAgainstFloor: against('turnMs'),
      workerCpuAgainstFloor: against('workerCpuMs'),
    }).filter(([, value]) => Number.isFinite(value));
    const all = (key: keyof Speed): number[] => samples.map((sample) => sample[key]);
    return [
      {
        measure: 'peers',
        what: name,
        peer: entry.spec.id,
        value: name === 'alone' ? of('turnMs') : of('turnsPerSecond'),
        unit: name === 'alone' ? 'ms a turn' : 'turns/s',
        of: { turnMs: of('turnMs'), ...used, ...Object.fromEntries(ratios) },
        samples: { turnMs: all('turnMs'), turnsPerSecond: all('turnsPerSecond') },
        note: `${rounds} rounds of ${sessions} x ${turns} turns, interleaved`,
      },
    ];
  });
};

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

/** Peers that cannot run here say why and are left out. */
export const peers: Measure = async (context) => {
  const { lengths, recoveries } = PLAN[context.quick ? 'quick' : 'full'];
  const stack = new Stack(context);
  const { entries, leftOut } = await open(context, stack);
  await takeSpeeds(entries, context.quick);
  console.error('  bytes …');
  for (const entry of entries) {
    for (const turns of lengths) {
      await take(entry, `a session of ${turns} turns`, async () => {
        entry.bytes.set(turns, await bytes(entry, entry.process, turns));
      });
    }
  }
  console.error('  killed …');
  for (const entry of entries) await entry.process.kill();
  for (let round = 0; round < recoveries; round++) {
    for (const entry of entries) {
      await take(entry, 'killed in a tool call', async () => {
        entry.recoveries.push(await recovery(entry));
      });
    }
  }
  for (const versions of [stack.versions, ...entries.map((entry) => entry.versions)]) {
    Object.assign(context.versions, versions);
  }
  const floor = entries.find(({ spec }) => spec.id === 'floor');
  return [
    ...leftOut,
    ...entries.flatMap((entry) => [
      ...speedLines(entry, floor, context.quick),
      ...byteLines(entry),
      ...recoveryLines(entry),
      ...entry.failures.map(
        (note): Line => ({ measure: 'peers', what: 'failed', peer: entry.spec.id, value: 0, unit: '', note }),
      ),
    ]),
  ];
};

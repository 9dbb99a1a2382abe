/** The same work on Perdure, on a bare workflow, and on what a user would pick instead; see `bench/peers`. */
import { PEERS } from '../peers/catalogue.ts';
import { type Bytes, bytes, type Recovery, recovery, type Speed, speed } from '../peers/figures.ts';
import { PeerProcess, type Prepared, prepare } from '../peers/process.ts';
import { Stack } from '../peers/stack.ts';
import { canTell } from '../peers/usage.ts';
import type { Context, Measure } from '../support/context.ts';
import type { Line } from '../support/report.ts';
import { median, medianRatio, steadied } from '../support/stats.ts';

/**
 * Loads and rounds. The whole takes 35 minutes on two cores. A session's start is a small part of it. Until Node has
 * compiled the code, which takes some thousand turns, a turn takes up to half as much processor time again: so the load
 * to warm up is repeated for some seconds.
 */
const PLAN = {
  full: {
    warmUp: { sessions: 20, turns: 20, seconds: 30 },
    loads: {
      alone: { sessions: 1, turns: 40, rounds: 15 },
      at20: { sessions: 20, turns: 40, rounds: 9 },
      at200: { sessions: 200, turns: 3, rounds: 2 },
    },
    lengths: [10, 50, 200, 500],
    recoveries: 3,
  },
  quick: {
    warmUp: { sessions: 3, turns: 10, seconds: 0 },
    loads: {
      alone: { sessions: 1, turns: 15, rounds: 2 },
      at20: { sessions: 20, turns: 4, rounds: 1 },
      at200: { sessions: 200, turns: 1, rounds: 1 },
    },
    lengths: [10, 50],
    recoveries: 1,
  },
} as const;

/** The session length at which sizes are compared. */
const COMPARED_TURNS = 200;

type LoadName = keyof (typeof PLAN)['full']['loads'];

/** A peer with its measurements, and the reasons for missing ones. */
interface Entry extends Prepared {
  process: PeerProcess;
  /** By round, so that a ratio compares values of one round. A failed round is missing. */
  speeds: Record<LoadName, Map<number, Speed>>;
  bytes: Map<number, Bytes>;
  recoveries: Recovery[];
  failures: Set<string>;
}

function isAsked({ peers }: Context, id: string): boolean {
  return peers?.includes(id) ?? true;
}

/** The peers that can run here, warmed up, and lines that say why others cannot. */
async function open(context: Context, stack: Stack): Promise<{ entries: Entry[]; leftOut: Line[] }> {
  const entries: Entry[] = [];
  const leftOut: Line[] = [];
  for (const spec of PEERS.filter(({ id }) => isAsked(context, id))) {
    console.error(`  ${spec.title} …`);
    let process: PeerProcess | undefined;
    try {
      const prepared = await prepare(spec, stack, context);
      process = new PeerProcess(prepared);
      await process.said('ready');
      const { seconds, ...load } = PLAN[context.quick ? 'quick' : 'full'].warmUp;
      const until = performance.now() + seconds * 1_000;
      do await speed(prepared, process, load);
      while (performance.now() < until);
      entries.push({
        ...prepared,
        process,
        speeds: { alone: new Map(), at20: new Map(), at200: new Map() },
        bytes: new Map(),
        recoveries: [],
        failures: new Set(),
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

/** Takes a sample. A failure is a finding about the peer and is reported with its figures. */
async function take(entry: Entry, what: string, sample: () => Promise<void>): Promise<void> {
  try {
    await sample();
  } catch (error) {
    const reason = `${what}: ${error instanceof Error ? error.message : String(error)}`;
    console.error(`  ${entry.spec.title}: ${reason}`);
    entry.failures.add(reason);
  }
}

/**
 * A peer with several workers is measured only with many sessions. In all else, several workers are the same as one.
 */
function isMany({ spec }: Entry): boolean {
  return spec.workers !== undefined;
}

/** Groups the peers that share a store, and so a server. */
function byStore(entries: readonly Entry[]): Entry[][] {
  const stores = new Set(entries.map(({ spec }) => spec.store));
  return [...stores].map((store) => entries.filter(({ spec }) => spec.store === store));
}

/**
 * Runs each load in rounds, each round starting with another peer. Peers that are compared share a store and run right
 * after each other, because machines change their speed.
 */
async function takeSpeeds(entries: readonly Entry[], quick: boolean): Promise<void> {
  const { loads } = PLAN[quick ? 'quick' : 'full'];
  for (const name of Object.keys(loads) as LoadName[]) {
    console.error(`  ${name} …`);
    const { rounds, ...load } = loads[name];
    for (const group of byStore(entries)) {
      for (let round = 0; round < rounds; round++) {
        for (let i = 0; i < group.length; i++) {
          const entry = group[(round + i) % group.length];
          if (entry === undefined || (isMany(entry) && load.sessions === 1)) continue;
          await take(entry, `${load.sessions} sessions at once`, async () => {
            entry.speeds[name].set(round, await speed(entry, entry.process, load));
          });
        }
      }
    }
  }
}

/** The samples of a peer. NaN: a failed round. */
function byRound(entry: Entry | undefined, name: LoadName, key: keyof Speed, rounds: number): number[] {
  return Array.from({ length: rounds }, (_, round) => entry?.speeds[name].get(round)?.[key] ?? Number.NaN);
}

/** @param group - the peers of its store, which ran in the same rounds */
function speedLines(entry: Entry, group: readonly Entry[], quick: boolean): Line[] {
  const { loads } = PLAN[quick ? 'quick' : 'full'];
  const index = group.indexOf(entry);
  return (Object.keys(loads) as LoadName[]).flatMap((name): Line[] => {
    if (entry.speeds[name].size === 0) return [];
    const { sessions, turns, rounds } = loads[name];
    const all = (key: keyof Speed): number[] => byRound(entry, name, key, rounds);
    const of = (key: keyof Speed): number => {
      const steady = steadied(group.map((each) => byRound(each, name, key, rounds)))[index] ?? [];
      return median(steady.filter(Number.isFinite));
    };
    const kept = (...keys: (keyof Speed)[]): Record<string, number[]> =>
      Object.fromEntries(keys.map((key) => [key, all(key)]));
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
          ...(isMany(entry) ? {} : kept('turnMs')),
          ...kept('turnsPerSecond'),
          ...(canTell ? kept('workerCpuMs', 'serverCpuMs', 'workerMb', 'serverMb') : {}),
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
    samples: { stored: [stored], ...(counted === undefined ? {} : { counted: [counted] }) },
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
      samples: {
        goOnMs: all('goOnMs'),
        readyMs: all('readyMs'),
        toolsRepeated: all('toolsRepeated'),
        modelsRepeated: all('modelsRepeated'),
      },
    },
  ];
}

/**
 * Our targets against the floor and against peers that store whole prompts. If a part failed, the value is NaN and the
 * target is missed.
 */
function targetLines(context: Context, entries: readonly Entry[]): Line[] {
  const { loads, lengths, recoveries } = PLAN[context.quick ? 'quick' : 'full'];
  const byId = new Map(entries.map((entry) => [entry.spec.id, entry]));
  const [ours, read, floor] = ['perdure', 'perdure-read', 'floor'].map((id) => byId.get(id));
  const lines: Line[] = [];
  const add = (
    whose: readonly string[],
    line: Pick<Line, 'what' | 'value' | 'target'> & Partial<Line>,
  ): void => {
    if (whose.every((id) => isAsked(context, id))) lines.push({ measure: 'peers', unit: 'x', ...line });
  };
  const against = (
    entry: Entry | undefined,
    base: Entry | undefined,
    name: LoadName,
    key: keyof Speed,
  ): number => {
    const [all = [], of = []] = [entry, base].map((each) => byRound(each, name, key, loads[name].rounds));
    return medianRatio(all, of);
  };
  for (const [id, entry, what, most] of [
    ['perdure', ours, 'a mutation', { alone: 1.05, at20: 1.1, cpu: 1.5 }],
    ['perdure-read', read, 'a read', { alone: 0.55, at20: 0.6, cpu: 0.75 }],
  ] as const) {
    add([id, 'floor'], {
      what: `turn with ${what} against the floor, 1 session`,
      value: against(entry, floor, 'alone', 'turnMs'),
      target: { atMost: most.alone },
    });
    add([id, 'floor'], {
      what: `turn with ${what} against the floor, 20 sessions`,
      value: 1 / against(entry, floor, 'at20', 'turnsPerSecond'),
      target: { atMost: most.at20 },
    });
    if (!canTell) continue;
    add([id, 'floor'], {
      what: `CPU of the worker a turn with ${what}, against the bare one`,
      value: against(entry, floor, 'at20', 'workerCpuMs'),
      target: { atMost: most.cpu },
    });
  }
  if (lengths.some((turns) => turns === COMPARED_TURNS)) {
    const size = (entry: Entry | undefined, key: keyof Bytes): number =>
      entry?.bytes.get(COMPARED_TURNS)?.[key] ?? Number.NaN;
    add(['perdure', 'floor'], {
      // Includes what the runs store for each other. `bytes` measures a single run.
      what: `history bytes a turn against the floor, ${COMPARED_TURNS} turns over runs of 50`,
      value: size(ours, 'counted') / size(floor, 'counted'),
      target: { atMost: 0.9 },
    });
    for (const entry of entries) {
      if (entry.spec.wholePrompts !== true) continue;
      add(['perdure'], {
        what: `stored bytes a turn of ${entry.spec.id} against ours, ${COMPARED_TURNS} turns`,
        value: size(entry, 'stored') / size(ours, 'stored'),
        target: { atLeast: 100 },
      });
    }
  }
  const repeated = ours?.recoveries.map(({ toolsRepeated }) => toolsRepeated) ?? [];
  add(['perdure'], {
    what: 'calls of the mutating tool that were repeated after SIGKILL, in the worst round',
    value: repeated.length === recoveries ? Math.max(...repeated) : Number.NaN,
    unit: '',
    target: { atMost: 0 },
  });
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
  // Peers with several workers end with the bench: once their parent is gone, their usage would count as that of
  // others.
  for (const entry of singles) await entry.process.kill();
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
  const groups = byStore(entries);
  return [
    ...leftOut,
    ...entries.flatMap((entry) => [
      ...speedLines(entry, groups.find((group) => group.includes(entry)) ?? [], context.quick),
      ...byteLines(entry),
      ...recoveryLines(entry),
      ...[...entry.failures].map(
        (note): Line => ({ measure: 'peers', what: 'failed', peer: entry.spec.id, value: 0, unit: '', note }),
      ),
    ]),
    ...targetLines(context, entries),
  ];
};

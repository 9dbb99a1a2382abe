/** The figures of one peer: each function takes one sample. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PeerProcess, type Prepared } from './process.ts';
import { cpuMs, residentBytes } from './usage.ts';

/** Sessions at once and turns of each. */
export interface Load {
  sessions: number;
  turns: number;
}

/** What one run of a load took. */
export interface Speed {
  /** Milliseconds from one model request of a session to the next. */
  turnMs: number;
  turnsPerSecond: number;
  /** CPU milliseconds of a turn: of the application's process, and of its server. */
  workerCpuMs: number;
  serverCpuMs: number;
  /** Megabytes resident right after the run. */
  workerMb: number;
  serverMb: number;
}

let made = 0;

function newSessions({ sessions, turns }: Load): string[] {
  const group = `s${++made}`;
  return Array.from({ length: sessions }, (_, i) => `${group}-${i}-${turns}`);
}

/** Runs before each sample: a process that was idle for some seconds is slower for a while. */
const LEAD_IN: Load = { sessions: 20, turns: 5 };

/** Runs a load in a process that is up and at work. */
export async function speed({ backing }: Prepared, process: PeerProcess, load: Load): Promise<Speed> {
  await process.run(newSessions(LEAD_IN));
  const before = { worker: cpuMs([process.pid]), server: cpuMs(backing.pids) };
  const { wallMs, gapMs } = await process.run(newSessions(load));
  const turns = load.sessions * load.turns;
  return {
    turnMs: gapMs,
    turnsPerSecond: turns / (wallMs / 1_000),
    workerCpuMs: (cpuMs([process.pid]) - before.worker) / turns,
    serverCpuMs: (cpuMs(backing.pids) - before.server) / turns,
    workerMb: residentBytes([process.pid]) / 2 ** 20,
    serverMb: residentBytes(backing.pids) / 2 ** 20,
  };
}

/** What a session leaves behind, per turn. */
export interface Bytes {
  /** Growth of the store. */
  stored: number;
  /** The session's own size as its server counts it. Absent if it does not. */
  counted?: number;
}

/** The fewest turns over which growth is measured: stores grow by pages, and keep some in reserve. */
const GROWTH_TURNS = 150;

/** Runs sessions with this many turns. @throws Error with the reason if the runtime cannot hold such a long session. */
export async function bytes({ backing }: Prepared, process: PeerProcess, turns: number): Promise<Bytes> {
  const sessions = newSessions({ sessions: Math.ceil(GROWTH_TURNS / turns), turns });
  const before = await backing.stored();
  await process.run(sessions);
  const stored = ((await backing.stored()) - before) / sessions.length / turns;
  const counted = await backing.counted(sessions[0] ?? '');
  return counted === undefined ? { stored } : { stored, counted: counted / turns };
}

/** The turn in whose tool call the process is killed, and the turns in all. */
const KILLED_AT = 2;
const TURNS = 3;

/** What a SIGKILL in the middle of a tool call led to. */
export interface Recovery {
  /** Milliseconds from the SIGKILL to the request to the model that follows the tool's result. */
  goOnMs: number;
  /** Of those, the milliseconds until the successor was ready. It is started right after the SIGKILL. */
  readyMs: number;
  /** Calls beyond one per turn. */
  toolsRepeated: number;
  modelsRepeated: number;
}

/** Runs a process and its successor on the same machine. No other process of the peer may run. */
export async function recovery(prepared: Prepared): Promise<Recovery> {
  const [session = ''] = newSessions({ sessions: 1, turns: TURNS });
  const ledger = join(prepared.dir, `ledger-${session}`);
  const first = new PeerProcess(prepared, { ledger, hangAt: KILLED_AT });
  let second: PeerProcess | undefined;
  try {
    await first.said('ready');
    // Never ends: its process is killed.
    first.run([session]).catch(() => {});
    await first.said('tool', ({ turn }) => turn === KILLED_AT);
    // The middle of a call that takes a second: everything that a runtime writes during a call has been written.
    await sleep(500);
    const killed = performance.now();
    await first.kill();
    second = new PeerProcess(prepared, { ledger });
    const ready = await second.said('ready');
    // A runtime that continues by itself may do so before the request: its messages are kept.
    const ended = second.run([session], { resume: true });
    ended.catch(() => {});
    const next = await second.said('model', ({ turn }) => turn === KILLED_AT + 1);
    await ended;
    const calls = (await readFile(ledger, 'utf8')).trim().split('\n');
    const count = (kind: string): number => calls.filter((line) => line.startsWith(kind)).length;
    return {
      goOnMs: next.at - killed,
      readyMs: ready.at - killed,
      toolsRepeated: count('tool') - TURNS,
      modelsRepeated: count('model') - TURNS - 1,
    };
  } finally {
    await first.kill();
    await second?.kill();
  }
}

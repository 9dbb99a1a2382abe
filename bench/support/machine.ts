/** The machine of a measurement, as far as a reader needs it to compare results. */
import { execFileSync } from 'node:child_process';
import { arch, cpus, loadavg, platform, release, totalmem } from 'node:os';
import { Connection } from '@temporalio/client';
import sdk from '@temporalio/client/package.json' with { type: 'json' };
import ai from 'ai/package.json' with { type: 'json' };
import perdure from '../../package.json' with { type: 'json' };

/** Versions and machine. Nothing in it names a host or a person. */
export interface Machine {
  perdure: string;
  commit: string;
  node: string;
  temporalSdk: string;
  temporalServer: string;
  ai: string;
  cpu: string;
  cores: number;
  memoryGb: number;
  os: string;
  /** The load of the machine before the run. */
  loadBefore: number;
  /** Versions of the peers that were compared. */
  compared?: Record<string, string>;
}

/** Reads the machine's data, and the server's version from the server itself. */
export async function readMachine(address: string): Promise<Machine> {
  const connection = await Connection.connect({ address });
  const info = await connection.workflowService.getClusterInfo({});
  await connection.close();
  return {
    perdure: perdure.version,
    commit: commit(),
    node: process.version,
    temporalSdk: sdk.version,
    temporalServer: info.serverVersion ?? '',
    ai: ai.version,
    cpu: cpus()[0]?.model ?? '',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    os: `${platform()} ${release()} ${arch()}`,
    loadBefore: Number(loadavg()[0]?.toFixed(2)),
  };
}

function commit(): string {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim();
  } catch {
    return 'unknown';
  }
}

/** Small statistics: medians only, because the machines that run this are shared and noisy. */

/** The median of some numbers. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle];
  if (upper === undefined) throw new Error('the median of nothing');
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

/**
 * The median of `ours[i] / base[i]`: both were measured right after each other, so slow phases cancel out. A round with
 * a missing value or NaN is left out. NaN if no round is left.
 */
export function medianRatio(ours: readonly number[], base: readonly number[]): number {
  const ratios = ours.map((value, i) => value / (base[i] ?? Number.NaN)).filter(Number.isFinite);
  return ratios.length === 0 ? Number.NaN : median(ratios);
}

/**
 * Takes the phases of the machine out of the samples of arms that ran side by side: divides each round by how much
 * slower it was for all arms than usual. Without it, medians of two arms may be of a slow and of a fast phase. A round
 * that an arm lacks (NaN) does not count for that arm.
 */
export function steadied(arms: readonly (readonly number[])[]): number[][] {
  const usual = arms.map((samples) => {
    const taken = samples.filter(Number.isFinite);
    return taken.length === 0 ? Number.NaN : median(taken);
  });
  const slower = (round: number): number => {
    const logs = arms
      .map((samples, arm) => Math.log((samples[round] ?? Number.NaN) / (usual[arm] ?? Number.NaN)))
      .filter(Number.isFinite);
    return Math.exp(logs.reduce((sum, log) => sum + log, 0) / Math.max(1, logs.length));
  };
  return arms.map((samples) => samples.map((sample, round) => sample / slower(round)));
}

/** Runs all arms once per round, each round starting with another arm. Returns the samples of each arm. */
export async function interleave<ARM extends string>(
  rounds: number,
  arms: Readonly<Record<ARM, (round: number) => Promise<number>>>,
): Promise<Record<ARM, number[]>> {
  const names = Object.keys(arms) as ARM[];
  const samples = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<ARM, number[]>;
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < names.length; i++) {
      const name = names[(round + i) % names.length] as ARM;
      samples[name].push(await arms[name](round));
    }
  }
  return samples;
}

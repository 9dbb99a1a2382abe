/** Telling many stories: the two services side by side, each with a server and a queue of stories of its own. */
import type { Breach } from './judge.ts';
import { type Lane, openLane } from './lane.ts';
import { POINTS } from './points/index.ts';
import { type RunResult, tell } from './run.ts';
import { shrink } from './shrink.ts';
import { commandOf, STACKS, type Story } from './story.ts';

/**
 * Tells all stories, one stack after the other. `told` is called with each result as it comes.
 * A lane that breaks is opened anew, and the story that broke it is told once more.
 *
 * @throws what the second telling throws, when the lanes have ended.
 */
export async function tellAll(
  stories: readonly Story[],
  stop: AbortSignal,
  told: (result: RunResult) => Promise<void>,
): Promise<void> {
  for (const stack of STACKS) {
    const lanes = (['honoured', 'ignored'] as const).map((keys) =>
      tellLane(
        stories.filter((story) => story.keys === keys && story.stack === stack),
        stop,
        told,
      ),
    );
    const ended = await Promise.allSettled(lanes);
    for (const end of ended) if (end.status === 'rejected') throw end.reason;
  }
}

async function tellLane(
  stories: readonly Story[],
  stop: AbortSignal,
  told: (result: RunResult) => Promise<void>,
): Promise<void> {
  const [first] = stories;
  if (first === undefined || stop.aborted) return;
  const { keys, stack } = first;
  let lane: Lane = await openLane(keys, stack);
  const play = async (story: Story): Promise<RunResult> => {
    const point = POINTS.find(({ name }) => name === story.point);
    if (point === undefined) throw new Error(`no point ${story.point}`);
    try {
      return await tell(point, story, lane);
    } catch (error) {
      console.error(`A lane broke (${commandOf(story)}): ${String(error)}; it is opened anew`);
      await lane.close().catch(() => {});
      lane = await openLane(keys, stack);
      return tell(point, story, lane);
    }
  };
  const stopped = new Promise<null>((resolve) => stop.addEventListener('abort', () => resolve(null)));
  try {
    for (const story of stories) {
      if (stop.aborted) return;
      // A terminal's Ctrl-C goes to the workers, too: what is being told then says nothing.
      const result = await Promise.race([play(story), stopped]);
      if (result === null) return;
      await told(result);
      if (result.breaches.length === 0 || stop.aborted) continue;
      const shrunk = shrink({ story, broke: broken(result) }, async (each) => broken(await play(each)));
      const smallest = await Promise.race([shrunk, stopped]);
      if (stop.aborted) return;
      console.error(
        smallest === null
          ? `  it did not fail so a second time; to try again: ${commandOf(story)}`
          : `  again: ${commandOf(smallest)}`,
      );
    }
  } finally {
    await lane.close();
  }
}

function broken({ breaches }: RunResult): Breach[] {
  return breaches.map(({ breach }) => breach);
}

/** Runs many stories: the two services side by side, each with its own server and queue of stories. */
import { type Lane, openLane } from './lane.ts';
import { POINTS } from './points/index.ts';
import { MISSED } from './points/point.ts';
import { type RunResult, tell } from './run.ts';
import { shrink } from './shrink.ts';
import { commandOf, STACKS, type Story } from './story.ts';

/**
 * Runs all stories, one stack after the other. Calls `told` with each result. A lane on which a story cannot begin, or
 * has not closed, is replaced by a new one.
 *
 * @throws when a story cannot begin on a new lane either. Closes the lanes first.
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
  let broken = false;
  const anew = async (story: Story, why: string): Promise<void> => {
    console.error(`A lane broke (${commandOf(story)}): ${why}; it is opened anew`);
    await lane.close().catch(() => {});
    lane = await openLane(keys, stack);
    broken = false;
  };
  const play = async (story: Story): Promise<RunResult> => {
    const point = POINTS.find(({ name }) => name === story.point);
    if (point === undefined) throw new Error(`no point ${story.point}`);
    if (broken) await anew(story, 'the story before it has not closed');
    let result = await tell(point, story, lane).catch(async (error: unknown) => {
      await anew(story, String(error));
      return tell(point, story, lane);
    });
    const [first, ...more] = result.breaches;
    if (more.length === 0 && first?.text.includes(MISSED) === true && result.unclosed === null) {
      console.error(`Told once more (${commandOf(story)}): ${first.text.split('\n')[0]}`);
      result = await tell(point, story, lane);
    }
    broken = result.unclosed !== null;
    if (broken) console.error(`A story has not closed (${commandOf(story)}): ${result.unclosed}`);
    return result;
  };
  const stopped = new Promise<null>((resolve) => stop.addEventListener('abort', () => resolve(null)));
  try {
    for (const story of stories) {
      if (stop.aborted) return;
      // A terminal sends Ctrl-C to the workers, too, so the result of the story that runs then means nothing.
      const result = await Promise.race([play(story), stopped]);
      if (result === null) return;
      await told(result);
      if (result.breaches.length === 0 || stop.aborted) continue;
      const shrunk = shrink({ story, broke: failures(result) }, async (each) => failures(await play(each)));
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

/** What identifies a failure: its breaches, and for an error the words that are the same in every run. */
export function failures({ breaches }: Pick<RunResult, 'breaches'>): string[] {
  return breaches.map(({ breach, text }) => {
    if (breach !== 'error') return breach;
    const [line = ''] = text.split(/\n|\{/);
    return `error: ${line.replace(/run-\d+-\d+(-[a-z]+-\d+)?/g, 'session').replace(/\d+/g, '#')}`;
  });
}
